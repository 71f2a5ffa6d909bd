import TokenVault

extension TokenStorageConformance {
    static let serviceChecks: [ConformanceCheck] = [
        ConformanceCheck("a storage reports its service") { scene in
            let storage = try await scene.storage("one")
            try expect(bytesOf: storage.service, are: scene.service("one"), "service")
            try await storage.store(token: "x", for: "key")
            let metadata = try await storage.metadata(for: "key")
            try expect(bytesOf: metadata?.service, are: scene.service("one"), "the metadata's service")
        },
        ConformanceCheck("services do not see each other's items") { scene in
            let one = try await scene.storage("one")
            let two = try await scene.storage("two")
            try await one.store(token: "of one", for: "key")
            try expect(try await two.retrieve(for: "key"), is: nil, "the key in the other service")
            try await two.store(token: "of two", for: "key")
            try expect(try await one.retrieve(for: "key"), is: "of one", "the key in the first service")
            try expect(try await one.list().items.count, is: 1, "items of the first service")
            try expect(try await two.delete(for: "key"), is: true, "whether the other's was there")
            try expect(try await one.retrieve(for: "key"), is: "of one", "the key in the first service")
        },
        ConformanceCheck("two storages of one service share its items") { scene in
            let one = try await scene.storage()
            let two = try await scene.storage()
            try await one.store(token: "shared", for: "key")
            try expect(try await two.retrieve(for: "key"), is: "shared", "the other storage's read")
            try await two.delete(for: "key")
            try expect(try await one.retrieve(for: "key"), is: nil, "the first storage's read")
        },
        ConformanceCheck("services that Swift calls equal but differ in their bytes are two services") {
            scene in
            let composed = try await scene.storage(Samples.composed)
            let decomposed = try await scene.storage(Samples.decomposed)
            try await composed.store(token: "composed", for: "key")
            try expect(try await decomposed.retrieve(for: "key"), is: nil, "the decomposed service")
            try expect(try await decomposed.list().items.count, is: 0, "items of the decomposed service")
        },
        ConformanceCheck("the boundary between service and key is kept") { scene in
            let short = try await scene.storage("a")
            let long = try await scene.storage("ab")
            try await short.store(token: "short", for: "bc")
            try expect(try await long.retrieve(for: "c"), is: nil, "ab + c after a + bc was stored")
            try await long.store(token: "long", for: "c")
            try expect(try await short.retrieve(for: "bc"), is: "short", "a + bc")
        },
        ConformanceCheck("deleteAll empties its own service only") { scene in
            let one = try await scene.storage("one")
            let two = try await scene.storage("two")
            try await one.store(token: "x", for: "key")
            try await two.store(token: "y", for: "key")
            try expect(try await one.deleteAll(), is: 1, "how many were deleted")
            try expect(try await one.list().items.count, is: 0, "items left in the service")
            try expect(try await two.retrieve(for: "key"), is: "y", "the other service's item")
        },
        ConformanceCheck("an unusable service is invalidArgument") { scene in
            for name in [String(repeating: "s", count: 1_025), String(repeating: "é", count: 513)] {
                try await expectRefusal(.invalidArgument, of: "a read") {
                    try await scene.subject.storage(service: name).secret(for: "key")
                }
                try await expectRefusal(.invalidArgument, of: "a list") {
                    try await scene.subject.storage(service: name).list()
                }
                try await expectRefusal(.invalidArgument, of: "a store") {
                    try await scene.subject.storage(service: name).store(token: "x", for: "key")
                }
                try await expectRefusal(.invalidArgument, of: "deleteAll()") {
                    try await scene.subject.storage(service: name).deleteAll()
                }
            }
        },
        ConformanceCheck("a service of 1,024 bytes is usable") { scene in
            let mark = scene.service("")
            let name = mark + String(repeating: "s", count: 1_024 - mark.utf8.count)
            let storage = try await scene.subject.storage(service: name)
            try await storage.store(token: "x", for: "key")
            try expect(try await storage.retrieve(for: "key"), is: "x", "the token")
            try await storage.deleteAll()
        },
    ]
}
