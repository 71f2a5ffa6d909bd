import TokenVault

extension TokenStorageConformance {
    static let changeChecks: [ConformanceCheck] = [
        ConformanceCheck("stores, updates, renames and deletes are reported with their generations") {
            scene in
            let storage = try await scene.storage()
            let reader = ChangeReader(storage, scene)
            let stored = try await storage.store(token: "x", for: "key")
            try expect(try await reader.next(), is: .stored("key", stored), "the store")
            let replaced = try await storage.store(token: "y", for: "key")
            try expect(try await reader.next(), is: .stored("key", replaced), "the replace")
            let update = try await storage.commit([.update("key", details: TokenDetails(label: "z"))])
            try expect(try await reader.next(), is: .stored("key", update.generation ?? 0), "the update")
            let rename = try await storage.commit([.rename("key", to: "new")])
            let events: Set = [try await reader.next(), try await reader.next()]
            let renamed = rename.generation ?? 0
            try expect(events, is: [.deleted("key", renamed), .stored("new", renamed)], "the rename")
            let delete = try await storage.commit([.delete("new")])
            try expect(try await reader.next(), is: .deleted("new", delete.generation ?? 0), "the delete")
        },
        ConformanceCheck("every change of a commit and of deleteAll is reported") { scene in
            let storage = try await scene.storage()
            let reader = ChangeReader(storage, scene)
            let commit = try await storage.commit([
                .store(Secret([1]), for: "a"), .store(Secret([2]), for: "b"), .delete("absent"),
            ])
            let made = commit.generation ?? 0
            let stores: Set = [try await reader.next(), try await reader.next()]
            try expect(stores, is: [.stored("a", made), .stored("b", made)], "the stores")
            try await storage.deleteAll()
            let deletes = [try await reader.next(), try await reader.next()]
            for case .deleted(_, let generation)? in deletes {
                try expect(generation > made, "a generation above the stores'", found: "\(generation)")
            }
            try expect(Set(deletes.map { $0?.key }), is: ["a", "b"], "the keys of the deletes")
        },
        ConformanceCheck("only changes after the subscription are reported") { scene in
            let storage = try await scene.storage()
            try await storage.store(token: "x", for: "before")
            let reader = ChangeReader(storage, scene)
            try await storage.store(token: "x", for: "last")
            try expect(
                try await reader.events(until: "last").compactMap(\.key), is: ["last"], "the reported keys")
        },
        ConformanceCheck("a change that did not happen is not reported") { scene in
            let storage = try await scene.storage()
            try await storage.store(token: "x", for: "there")
            let reader = ChangeReader(storage, scene)
            try await storage.delete(for: "absent")
            try await expectRefusal(.conflict, of: "store-if-absent") {
                try await storage.commit([
                    .store(Secret([1]), for: "new"), .store(Secret([1]), for: "there", expecting: .absent),
                ])
            }
            _ = try await storage.secret(for: "there")
            try await storage.store(token: "x", for: "last")
            try expect(
                try await reader.events(until: "last").compactMap(\.key), is: ["last"], "the reported keys")
        },
        ConformanceCheck("another service's changes are not reported") { scene in
            let storage = try await scene.storage("one")
            let other = try await scene.storage("two")
            let reader = ChangeReader(storage, scene)
            try await other.store(token: "x", for: "theirs")
            try await storage.store(token: "x", for: "last")
            try expect(
                try await reader.events(until: "last").compactMap(\.key), is: ["last"], "the reported keys")
        },
        ConformanceCheck("every reader gets the change") { scene in
            let storage = try await scene.storage()
            let another = try await scene.storage()
            let readers = [
                ChangeReader(storage, scene), ChangeReader(storage, scene), ChangeReader(another, scene),
            ]
            let generation = try await storage.store(token: "x", for: "key")
            for reader in readers {
                try expect(try await reader.next(), is: .stored("key", generation), "each reader's event")
            }
        },
        ConformanceCheck("a slow reader sees the latest generation of every key, never backwards") { scene in
            let storage = try await scene.storage()
            let reader = ChangeReader(storage, scene)
            var latest: [TokenKey: Generation] = [:]
            for index in 0..<60 {
                let key = TokenKey("key \(index % 7)")
                latest[key] = try await storage.store(token: "\(index)", for: key)
            }
            latest["last"] = try await storage.store(token: "x", for: "last")
            let events = try await reader.events(until: "last")
            try expectForwards(events)
            let seen = Dictionary(
                events.compactMap { event in event.key.map { ($0, event.generation ?? 0) } },
                uniquingKeysWith: { $1 })
            try expect(seen, is: latest, "the last generation seen of each key")
        },
        ConformanceCheck("a reader beside a writer never goes backwards and gets the last change") { scene in
            let storage = try await scene.storage()
            let reader = ChangeReader(storage, scene)
            async let events = reader.events(until: "last")
            var latest: [TokenKey: Generation] = [:]
            for index in 0..<100 {
                let key = TokenKey("key \(index % 5)")
                latest[key] = try await storage.store(token: "\(index)", for: key)
            }
            latest["last"] = try await storage.store(token: "x", for: "last")
            let found = try await events
            try expectForwards(found)
            let seen = Dictionary(
                found.compactMap { event in event.key.map { ($0, event.generation ?? 0) } },
                uniquingKeysWith: { $1 })
            try expect(seen, is: latest, "the last generation seen of each key")
        },
        ConformanceCheck("a reader that missed changes gets an overflow, then the later ones") { scene in
            let storage = try await scene.storage()
            let reader = ChangeReader(storage, scene)
            let keys = (0..<3_000).map { TokenKey("key \($0)") }
            for start in stride(from: 0, to: keys.count, by: 500) {
                let changes = keys[start..<start + 500].map { TokenChange.store(Secret([1]), for: $0) }
                try await storage.commit(changes)
            }
            let last = try await storage.store(token: "x", for: "last")
            let events = try await reader.events(until: "last")
            let seen = Set(events.compactMap(\.key))
            try expect(
                events.contains(.overflowed) || seen.isSuperset(of: keys),
                "an overflow or every key", found: "\(seen.count) keys and no overflow")
            try expect(events.last, is: .stored("last", last), "the last event")
        },
        ConformanceCheck("a cancelled reader ends") { scene in
            let storage = try await scene.storage()
            let reader = ChangeReader(storage, scene)
            let task = Task { try await reader.next() }
            task.cancel()
            switch await task.result {
            case .success(let event): try expect(event, is: nil, "the event of a cancelled reader")
            case .failure(is CancellationError): break
            case .failure(let error): throw error
            }
        },
    ]

    private static func expectForwards(
        _ events: [TokenEvent], file: String = #fileID, line: Int = #line
    ) throws {
        var latest: [TokenKey: Generation] = [:]
        for event in events {
            guard let key = event.key, let generation = event.generation else { continue }
            if let before = latest[key] {
                try expect(
                    generation > before, "an event of \(key) above generation \(before)",
                    found: "\(generation)", file: file, line: line)
            }
            latest[key] = generation
        }
    }
}
