import TokenVault

extension TokenStorageConformance {
    static let generationChecks: [ConformanceCheck] = [
        ConformanceCheck("generations grow with every commit and stay below 2^53") { scene in
            let storage = try await scene.storage()
            var last: Generation = 0
            for index in 0..<20 {
                let key = TokenKey("key \(index % 3)")
                let generation = try await storage.store(token: "\(index)", for: key)
                try expect(generation > last, "a generation above \(last)", found: "\(generation)")
                try expect(generation.rawValue < 1 << 53, "a generation below 2^53", found: "\(generation)")
                last = generation
            }
        },
        ConformanceCheck("metadata reports the generation that the store returned") { scene in
            let storage = try await scene.storage()
            for _ in 0..<3 {
                let generation = try await storage.store(token: "x", for: "key")
                try expect(
                    try await storage.metadata(for: "key")?.generation, is: generation, "metadata(for:)")
                try expect(
                    try await storage.item(for: "key")?.metadata.generation, is: generation, "item(for:)")
                try expect(
                    try await storage.list().items.first?.generation, is: generation, "list(_:)")
            }
        },
        ConformanceCheck("a generation is not used again after a delete") { scene in
            let storage = try await scene.storage()
            var last: Generation = 0
            for _ in 0..<5 {
                let generation = try await storage.store(token: "x", for: "key")
                try expect(generation > last, "a generation above \(last)", found: "\(generation)")
                last = generation
                try await storage.delete(for: "key")
            }
        },
        ConformanceCheck("a generation is not used again after deleteAll") { scene in
            let storage = try await scene.storage()
            let before = try await storage.store(token: "x", for: "key")
            try await storage.deleteAll()
            let after = try await storage.store(token: "x", for: "key")
            try expect(after > before, "a generation above \(before)", found: "\(after)")
        },
        ConformanceCheck("reading changes no generation") { scene in
            let storage = try await scene.storage()
            let generation = try await storage.store(token: "x", for: "key")
            _ = try await storage.secret(for: "key")
            _ = try await storage.list()
            _ = try await storage.retrieve(for: "absent")
            try expect(try await storage.metadata(for: "key")?.generation, is: generation, "the generation")
        },
        ConformanceCheck("a change of one key leaves the generation of others") { scene in
            let storage = try await scene.storage()
            let generation = try await storage.store(token: "x", for: "key")
            try await storage.store(token: "y", for: "other")
            try await storage.delete(for: "other")
            try expect(try await storage.metadata(for: "key")?.generation, is: generation, "the generation")
        },
        ConformanceCheck("storing the same secret again is a new generation") { scene in
            let storage = try await scene.storage()
            let first = try await storage.store(token: "same", for: "key")
            let second = try await storage.store(token: "same", for: "key")
            try expect(second > first, "a generation above \(first)", found: "\(second)")
        },
    ]

    static let compareChecks: [ConformanceCheck] = [
        ConformanceCheck("store-if-absent stores once") { scene in
            let storage = try await scene.storage()
            let made = try await storage.compareAndStore(Secret([1]), for: "key", expected: nil)
            let error = try await expectRefusal(.conflict, of: "a second store-if-absent") {
                try await storage.compareAndStore(Secret([2]), for: "key", expected: nil)
            }
            try expect(error.generation, is: made, "the conflict's generation")
            try expect(try await storage.secret(for: "key"), is: Secret([1]), "the secret")
            try await storage.delete(for: "key")
            try await storage.compareAndStore(Secret([3]), for: "key", expected: nil)
            try expect(try await storage.secret(for: "key"), is: Secret([3]), "the secret after a delete")
        },
        ConformanceCheck("compare-and-store replaces the expected generation only") { scene in
            let storage = try await scene.storage()
            let first = try await storage.store(Secret([1]), for: "key")
            let second = try await storage.compareAndStore(Secret([2]), for: "key", expected: first)
            try expect(second > first, "a generation above \(first)", found: "\(second)")
            let error = try await expectRefusal(.conflict, of: "an older generation") {
                try await storage.compareAndStore(Secret([3]), for: "key", expected: first)
            }
            try expect(error.generation, is: second, "the conflict's generation")
            try await expectRefusal(.conflict, of: "a future generation") {
                let next = Generation(rawValue: second.rawValue + 1)
                return try await storage.compareAndStore(Secret([4]), for: "key", expected: next)
            }
            try expect(try await storage.secret(for: "key"), is: Secret([2]), "the secret")
            try expect(try await storage.metadata(for: "key")?.generation, is: second, "the generation")
        },
        ConformanceCheck("compare-and-store of an absent key with a generation is a conflict") { scene in
            let storage = try await scene.storage()
            let gone = try await storage.store(Secret([1]), for: "key")
            try await storage.delete(for: "key")
            let error = try await expectRefusal(.conflict, of: "a generation of a deleted item") {
                try await storage.compareAndStore(Secret([2]), for: "key", expected: gone)
            }
            try expect(error.generation, is: nil, "the conflict's generation")
            try expect(try await storage.secret(for: "key"), is: nil, "the secret")
        },
        ConformanceCheck("an item stored again does not have its old generation") { scene in
            let storage = try await scene.storage()
            let old = try await storage.store(Secret([1]), for: "key")
            try await storage.delete(for: "key")
            try await storage.store(Secret([1]), for: "key")
            try await expectRefusal(.conflict, of: "the generation before the delete") {
                try await storage.compareAndStore(Secret([2]), for: "key", expected: old)
            }
            try await expectRefusal(.conflict, of: "the generation before the delete") {
                try await storage.compareAndDelete(for: "key", expected: old)
            }
            try expect(try await storage.secret(for: "key"), is: Secret([1]), "the secret")
        },
        ConformanceCheck("compare-and-delete deletes the expected generation only") { scene in
            let storage = try await scene.storage()
            let first = try await storage.store(Secret([1]), for: "key")
            let second = try await storage.store(Secret([2]), for: "key")
            let error = try await expectRefusal(.conflict, of: "an older generation") {
                try await storage.compareAndDelete(for: "key", expected: first)
            }
            try expect(error.generation, is: second, "the conflict's generation")
            try expect(try await storage.secret(for: "key"), is: Secret([2]), "the secret")
            try expect(
                try await storage.compareAndDelete(for: "key", expected: second), is: true,
                "whether it deleted")
            try expect(try await storage.secret(for: "key"), is: nil, "the secret")
            try expect(
                try await storage.compareAndDelete(for: "key", expected: second), is: false,
                "whether it deleted an absent item")
        },
        ConformanceCheck("updates, renames and deletes check the expected generation") { scene in
            let storage = try await scene.storage()
            let generation = try await storage.store(token: "x", for: "key", label: "old")
            let wrong = TokenChange.Expectation.generation(Generation(rawValue: generation.rawValue + 9))
            let refused: [TokenChange] = [
                .update("key", details: TokenDetails(label: "new"), expecting: wrong),
                .update("key", details: TokenDetails(label: "new"), expecting: .absent),
                .rename("key", to: "other", expecting: wrong), .delete("key", expecting: wrong),
                .delete("key", expecting: .absent),
            ]
            for change in refused {
                let error = try await expectRefusal(.conflict, of: "\(change.action)") {
                    try await storage.commit([change])
                }
                try expect(error.generation, is: generation, "the conflict's generation")
            }
            let metadata = try require(try await storage.metadata(for: "key"), "metadata")
            try expect(metadata.label, is: "old", "the label")
            try expect(metadata.generation, is: generation, "the generation")
            try await storage.commit([.rename("key", to: "other", expecting: .generation(generation))])
            try expect(try await storage.retrieve(for: "other"), is: "x", "the renamed item")
        },
        ConformanceCheck("deleting an absent item that is expected to be absent does nothing") { scene in
            let storage = try await scene.storage()
            let commit = try await storage.commit([.delete("absent", expecting: .absent)])
            try expect(commit, is: TokenCommit(generation: nil, existed: [false]), "the commit")
        },
    ]
}
