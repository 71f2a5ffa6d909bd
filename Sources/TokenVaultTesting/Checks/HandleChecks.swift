import TokenVault

extension TokenStorageConformance {
    static let handleChecks: [ConformanceCheck] = [
        ConformanceCheck("another handle sees an acknowledged change at once", requires: [.anotherHandle]) {
            scene in
            let here = try await scene.storage()
            let other = try await scene.subject.anotherHandle()
            let there = try await other.storage(service: scene.service())
            for round in 0..<10 {
                try await here.store(token: "\(round)", for: "key", label: "\(round)")
                try expect(try await there.retrieve(for: "key"), is: "\(round)", "the other handle's read")
                try expect(try await there.list(), is: try await here.list(), "the other handle's listing")
                try await there.store(token: "from there \(round)", for: "key")
                try expect(
                    try await here.retrieve(for: "key"), is: "from there \(round)", "the first handle's read")
            }
            try await there.delete(for: "key")
            try expect(try await here.secret(for: "key"), is: nil, "the first handle's read after a delete")
        },
        ConformanceCheck("generations grow across handles", requires: [.anotherHandle]) { scene in
            let here = try await scene.storage()
            let there = try await scene.subject.anotherHandle().storage(service: scene.service())
            var last: Generation = 0
            for round in 0..<10 {
                for storage in [here, there] {
                    let generation = try await storage.store(token: "\(round)", for: "key")
                    try expect(generation > last, "a generation above \(last)", found: "\(generation)")
                    last = generation
                }
            }
        },
        ConformanceCheck("compare-and-store across handles loses no update", requires: [.anotherHandle]) {
            scene in
            let here = try await scene.storage()
            let there = try await scene.subject.anotherHandle().storage(service: scene.service())
            try await here.store(token: "0", for: "counter")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for storage in [here, there, here, there] {
                    group.addTask { for _ in 0..<10 { try await increment("counter", in: storage) } }
                }
                try await group.waitForAll()
            }
            try expect(try await here.retrieve(for: "counter"), is: "40", "the counter")
        },
        ConformanceCheck(
            "another handle's changes are reported, with the next read at the latest",
            requires: [.anotherHandle]
        ) { scene in
            let here = try await scene.storage()
            let there = try await scene.subject.anotherHandle().storage(service: scene.service())
            let reader = ChangeReader(here, scene)
            let generation = try await there.store(token: "x", for: "key")
            _ = try await here.retrieve(for: "key")
            try expect(try await reader.next(), is: .stored("key", generation), "the event")
            let commit = try await there.commit([.delete("key")])
            _ = try await here.retrieve(for: "key")
            try expect(try await reader.next(), is: .deleted("key", commit.generation ?? 0), "the event")
        },
        ConformanceCheck("the blocking view is the same storage", requires: [.blockingView]) { scene in
            let storage = try await scene.storage()
            let blocking = try await scene.subject.blockingStorage(service: scene.service())
            try expect(bytesOf: blocking.service, are: storage.service, "service")
            try expect(blocking.supportedPolicies, is: storage.supportedPolicies, "supportedPolicies")
            try expect(blocking.defaultPolicy, is: storage.defaultPolicy, "defaultPolicy")
            try expect(try blocking.lockState(), is: try await storage.lockState(), "lockState()")
            let first = try blocking.store(token: "from blocking", for: "key", label: "label")
            let item = try require(try await storage.item(for: "key"), "the item")
            try expect(item.secret, is: Secret(utf8: "from blocking"), "the secret")
            try expect(try blocking.item(for: "key"), is: item, "the blocking view's item")
            try expect(try blocking.list(), is: try await storage.list(), "the blocking view's listing")
            let second = try await storage.store(token: "from async", for: "key")
            try expect(second > first, "a generation above \(first)", found: "\(second)")
            try expect(try blocking.retrieve(for: "key"), is: "from async", "the blocking read")
            try expect(try blocking.deleteAll(), is: 1, "how many were deleted")
            try expect(try await storage.secret(for: "key"), is: nil, "the deleted key")
        },
        ConformanceCheck("changes through the blocking view are reported", requires: [.blockingView]) {
            scene in
            let storage = try await scene.storage()
            let blocking = try await scene.subject.blockingStorage(service: scene.service())
            let reader = ChangeReader(storage, scene)
            let generation = try blocking.store(token: "x", for: "key")
            try expect(try await reader.next(), is: .stored("key", generation), "the event")
        },
        ConformanceCheck("a closed storage is closed to every call", requires: [.closing]) { scene in
            let before = try await scene.storage()
            try await before.store(token: "x", for: "key")
            let reader = ChangeReader(before, scene)
            try await scene.subject.close()
            try expect(try await reader.next(), is: nil, "the event after the close")
            for storage in [before, try await scene.storage()] {
                try await expectRefusal(.closed, of: "lockState()") { try await storage.lockState() }
                try await expectRefusal(.closed, of: "secret(for:)") { try await storage.secret(for: "key") }
                try await expectRefusal(.closed, of: "secret(for:)") { try await storage.secret(for: "none") }
                try await expectRefusal(.closed, of: "metadata(for:)") {
                    try await storage.metadata(for: "key")
                }
                try await expectRefusal(.closed, of: "list(_:)") { try await storage.list() }
                try await expectRefusal(.closed, of: "store") {
                    try await storage.store(token: "y", for: "key")
                }
                try await expectRefusal(.closed, of: "deleteAll()") { try await storage.deleteAll() }
                let late = ChangeReader(storage, scene)
                try expect(try await late.next(), is: nil, "the event of a reader after the close")
            }
        },
    ]
}
