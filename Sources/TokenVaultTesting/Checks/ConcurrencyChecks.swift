import TokenVault

extension TokenStorageConformance {
    static let concurrencyChecks: [ConformanceCheck] = [
        ConformanceCheck("concurrent stores of different keys are all there") { scene in
            let storage = try await scene.storage()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<40 {
                    group.addTask {
                        try await storage.store(token: "token \(index)", for: TokenKey("key \(index)"))
                    }
                }
                try await group.waitForAll()
            }
            for index in 0..<40 {
                let found = try await storage.retrieve(for: TokenKey("key \(index)"))
                try expect(found, is: "token \(index)", "the token of key \(index)")
            }
            try expect(try await storage.list().items.count, is: 40, "listed items")
        },
        ConformanceCheck("concurrent commits have generations of their own") { scene in
            let storage = try await scene.storage()
            let generations = try await withThrowingTaskGroup(of: Generation.self) { group in
                for index in 0..<40 {
                    group.addTask { try await storage.store(token: "\(index)", for: "key") }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            try expect(Set(generations).count, is: generations.count, "the number of different generations")
            let latest = try await storage.metadata(for: "key")?.generation
            try expect(latest, is: generations.max(), "the last generation")
        },
        ConformanceCheck("concurrent compare-and-store loses no update") { scene in
            let storage = try await scene.storage()
            try await storage.store(token: "0", for: "counter")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<8 {
                    group.addTask { for _ in 0..<10 { try await increment("counter", in: storage) } }
                }
                try await group.waitForAll()
            }
            try expect(try await storage.retrieve(for: "counter"), is: "80", "the counter")
        },
        ConformanceCheck("one of many concurrent stores-if-absent wins") { scene in
            let storage = try await scene.storage()
            let winners = try await withThrowingTaskGroup(of: Secret?.self) { group in
                for index in 0..<20 {
                    group.addTask {
                        let secret = Secret([UInt8(index)])
                        do throws(TokenStorageError) {
                            try await storage.compareAndStore(secret, for: "key", expected: nil)
                            return secret
                        } catch {
                            guard error.code == .conflict else { throw error }
                            return nil
                        }
                    }
                }
                return try await group.reduce(into: [Secret]()) { if let winner = $1 { $0.append(winner) } }
            }
            try expect(winners.count, is: 1, "the number of winners")
            try expect(try await storage.secret(for: "key"), is: winners.first, "the secret")
        },
        ConformanceCheck("concurrent compare-and-delete deletes once") { scene in
            let storage = try await scene.storage()
            let generation = try await storage.store(token: "x", for: "key")
            let deleted = try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<10 {
                    group.addTask { try await storage.compareAndDelete(for: "key", expected: generation) }
                }
                return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            try expect(deleted, is: 1, "how many deleted it")
        },
        ConformanceCheck("a read after an acknowledged store sees it") { scene in
            let storage = try await scene.storage()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<8 {
                    group.addTask {
                        let key = TokenKey("key \(index)")
                        for round in 0..<20 {
                            try await storage.store(token: "\(round)", for: key)
                            let found = try await storage.retrieve(for: key)
                            try expect(found, is: "\(round)", "the read after the store")
                        }
                    }
                }
                try await group.waitForAll()
            }
        },
        ConformanceCheck("readers never see half of a commit") { scene in
            let storage = try await scene.storage()
            func write(_ round: Int) async throws {
                let secret = Secret(utf8: "\(round)")
                try await storage.commit([.store(secret, for: "first"), .store(secret, for: "second")])
            }
            try await write(0)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { for round in 1...60 { try await write(round) } }
                group.addTask {
                    for _ in 0..<200 {
                        // A reader that saw the first change of a commit also sees the second change of that
                        // commit, or a later one.
                        let first = try require(try await storage.metadata(for: "first"), "the first")
                        let second = try require(try await storage.metadata(for: "second"), "the second")
                        try expect(
                            second.generation >= first.generation, "the second at or above the first",
                            found: "\(first.generation), then \(second.generation)")
                    }
                }
                try await group.waitForAll()
            }
        },
        ConformanceCheck("readers never see half of a secret") { scene in
            let storage = try await scene.storage()
            func secret(_ round: Int) -> Secret {
                Secret(Array(repeating: UInt8(round % 251), count: 1 + round * 997 % 20_000))
            }
            try await storage.store(secret(0), for: "key")
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { for round in 1...60 { try await storage.store(secret(round), for: "key") } }
                group.addTask {
                    let whole = (0...60).map { secret($0) }
                    for _ in 0..<200 {
                        let found = try require(try await storage.secret(for: "key"), "a secret")
                        try expect(whole.contains(found), "a secret that was stored", found: describe(found))
                    }
                }
                try await group.waitForAll()
            }
        },
        ConformanceCheck("a write in a cancelled task happens completely or is cancelled") { scene in
            let storage = try await scene.storage()
            try await storage.store(token: "before", for: "a")
            let task = Task {
                while !Task.isCancelled { await Task.yield() }
                try await storage.commit([
                    .store(Secret(utf8: "after"), for: "a"), .store(Secret(utf8: "after"), for: "b"),
                ])
            }
            task.cancel()
            let result = await task.result
            let found = [try await storage.retrieve(for: "a"), try await storage.retrieve(for: "b")]
            switch result {
            case .success: try expect(found, is: ["after", "after"], "a and b of a commit that was made")
            case .failure(let error as TokenStorageError) where error.code == .cancelled:
                try expect(found, is: ["before", nil], "a and b of a cancelled commit")
            case .failure(let error as TokenStorageError) where error.code == .outcomeUnknown:
                try expect(
                    found == ["before", nil] || found == ["after", "after"], "all or nothing",
                    found: "\(found)")
            case .failure(let error): throw error
            }
        },
        ConformanceCheck("a read in a cancelled task never says absent") { scene in
            let storage = try await scene.storage()
            try await storage.store(token: "there", for: "key")
            let task = Task {
                while !Task.isCancelled { await Task.yield() }
                return try await storage.retrieve(for: "key")
            }
            task.cancel()
            switch await task.result {
            case .success(let found): try expect(found, is: "there", "the token")
            case .failure(let error as TokenStorageError) where error.code == .cancelled: break
            case .failure(let error): throw error
            }
        },
    ]

    /// Adds one to the number under `key`. Tries again until no other writer comes between.
    static func increment(_ key: TokenKey, in storage: any TokenStorage) async throws {
        while true {
            let item = try require(try await storage.item(for: key), "the counter")
            let number = try require(item.secret.unprotectedText().flatMap { Int($0) }, "a number")
            do {
                try await storage.compareAndStore(
                    Secret(utf8: "\(number + 1)"), for: key, expected: item.metadata.generation)
                return
            } catch {
                guard error.code == .conflict else { throw error }
            }
        }
    }
}
