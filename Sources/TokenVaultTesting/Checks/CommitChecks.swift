import TokenVault

extension TokenStorageConformance {
    static let commitChecks: [ConformanceCheck] = [
        ConformanceCheck("a commit makes all its changes in one generation") { scene in
            let storage = try await scene.storage()
            for key in ["replaced", "updated", "deleted", "renamed"] {
                try await storage.store(token: "old \(key)", for: TokenKey(key))
            }
            let commit = try await storage.commit([
                .store(Secret(utf8: "new"), for: "stored"), .store(Secret(utf8: "new"), for: "replaced"),
                .update("updated", details: TokenDetails(label: "label")), .delete("deleted"),
                .delete("absent"), .rename("renamed", to: "renamed too"),
            ])
            try expect(commit.existed, is: [false, true, true, true, false, true], "existed")
            let generation = try require(commit.generation, "a generation")
            let items = try await storage.list().items
            try expect(
                items.map(\.key), is: ["renamed too", "replaced", "stored", "updated"], "the keys listed")
            for item in items { try expect(item.generation, is: generation, "each item's generation") }
            try expect(try await storage.retrieve(for: "stored"), is: "new", "the stored item")
            try expect(try await storage.retrieve(for: "replaced"), is: "new", "the replaced item")
            try expect(try await storage.retrieve(for: "updated"), is: "old updated", "the updated item")
            try expect(try await storage.retrieve(for: "renamed too"), is: "old renamed", "the renamed item")
        },
        ConformanceCheck("a commit is all or nothing, at any position of the refused change") { scene in
            let storage = try await scene.storage()
            try await storage.store(token: "kept", for: "there", label: "kept")
            try await storage.store(token: "kept", for: "taken")
            let before = try await storage.list()
            let refused: [(TokenStorageError.Code, TokenChange)] = [
                (.conflict, .store(Secret([1]), for: "there", expecting: .absent)),
                (.conflict, .store(Secret([1]), for: "new", expecting: .generation(1))),
                (.notFound, .update("absent", details: TokenDetails(label: "x"))),
                (.notFound, .rename("absent", to: "absent too")),
                (.alreadyExists, .rename("there", to: "taken")),
                (.tooLarge, .store(Samples.secret(Secret.maximumLength + 1), for: "there")),
                (.invalidKey, .store(Secret([1]), for: TokenKey(String(repeating: "k", count: 1_025)))),
                (.invalidArgument, .update("there", details: TokenDetails(label: "\n"))),
            ]
            let good: [TokenChange] = [
                .store(Secret([9]), for: "good 1"), .store(Secret([9]), for: "good 2"),
            ]
            for (code, change) in refused {
                for position in 0...good.count {
                    var changes = good
                    changes.insert(change, at: position)
                    try await expectRefusal(code, of: "a commit with a \(code) at \(position)") {
                        try await storage.commit(changes)
                    }
                    try expect(try await storage.list(), is: before, "the listing after the refusal")
                }
            }
            try expect(try await storage.retrieve(for: "there"), is: "kept", "the secret that was there")
        },
        ConformanceCheck("no key may occur twice in a commit") { scene in
            let storage = try await scene.storage()
            try await storage.store(token: "kept", for: "a")
            try await storage.store(token: "kept", for: "b")
            let before = try await storage.list()
            let twice: [[TokenChange]] = [
                [.store(Secret([1]), for: "a"), .store(Secret([2]), for: "a")],
                [.store(Secret([1]), for: "new"), .delete("new")],
                [.delete("a"), .delete("a")], [.rename("a", to: "c"), .delete("a")],
                [.delete("b"), .rename("a", to: "b")], [.rename("a", to: "a")],
                [.rename("a", to: "b"), .rename("b", to: "a")],
                [.rename("a", to: "c"), .store(Secret([1]), for: "c")],
            ]
            for changes in twice {
                try await expectRefusal(.invalidArgument, of: "a commit with a key twice") {
                    try await storage.commit(changes)
                }
                try expect(try await storage.list(), is: before, "the listing after the refusal")
            }
        },
        ConformanceCheck("keys that Swift calls equal are not one key in a commit") { scene in
            let storage = try await scene.storage()
            let composed = TokenKey(Samples.composed)
            let decomposed = TokenKey(Samples.decomposed)
            try await storage.commit([
                .store(Secret([1]), for: composed), .store(Secret([2]), for: decomposed),
            ])
            try expect(try await storage.secret(for: composed), is: Secret([1]), "the composed key")
            try expect(try await storage.secret(for: decomposed), is: Secret([2]), "the decomposed key")
        },
        ConformanceCheck("an empty commit does nothing") { scene in
            let storage = try await scene.storage()
            try expect(
                try await storage.commit([]), is: TokenCommit(generation: nil, existed: []), "the commit")
        },
        ConformanceCheck("a commit that changes nothing has no generation") { scene in
            let storage = try await scene.storage()
            try expect(
                try await storage.commit([.delete("a"), .delete("b")]),
                is: TokenCommit(generation: nil, existed: [false, false]), "the commit")
        },
        ConformanceCheck("a commit takes hundreds of changes") { scene in
            let storage = try await scene.storage()
            let keys = (0..<500).map { TokenKey("key \($0)") }
            let commit = try await storage.commit(keys.map { .store(Secret(utf8: $0.name), for: $0) })
            try expect(commit.existed, is: keys.map { _ in false }, "existed")
            try expect(try await storage.list().items.map(\.key), is: keys.sorted(), "the keys listed")
            for key in keys {
                try expect(try await storage.retrieve(for: key), is: key.name, "the token of its key")
            }
            let deletion = try await storage.commit(keys.map { .delete($0) })
            try expect(deletion.existed, is: keys.map { _ in true }, "existed")
            try expect(try await storage.list().items.count, is: 0, "listed items")
        },
        ConformanceCheck("a commit takes several secrets of 1 MiB") { scene in
            let storage = try await scene.storage()
            let secrets = (0..<4).map { Samples.secret(Secret.maximumLength, seed: UInt8($0)) }
            try await storage.commit(
                secrets.enumerated().map { .store($1, for: TokenKey("large \($0)")) })
            for (index, secret) in secrets.enumerated() {
                let found = try await storage.secret(for: TokenKey("large \(index)"))
                try expect(found, is: secret, "large secret \(index)")
            }
        },
    ]
}
