import TokenVault

extension TokenStorageConformance {
    static let listChecks: [ConformanceCheck] = [
        ConformanceCheck("an empty service lists nothing and hides nothing") { scene in
            let storage = try await scene.storage()
            try expect(try await storage.list(), is: TokenListing(items: [], hidden: 0), "the listing")
        },
        ConformanceCheck("a list is in the order of the keys' bytes") { scene in
            let storage = try await scene.storage()
            // UTF-16 puts U+1F511 before U+FF5E, dictionaries put é beside e; bytes do neither.
            let names = [
                "b", "a", "B", "Z", "z", "é", "e\u{301}", "e", "\u{ff5e}", "🔑", "10", "9", "~", " ", "aa",
                "a b",
            ]
            for name in names { try await storage.store(token: "x", for: TokenKey(name)) }
            let expected = names.map { Array($0.utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
            let found = try await storage.list().items.map { Array($0.key.name.utf8) }
            try expect(found, is: expected, "the order")
        },
        ConformanceCheck("a list shows each item once, in its current state") { scene in
            let storage = try await scene.storage()
            for index in 0..<5 {
                try await storage.store(token: "\(index)", for: "replaced")
                try await storage.store(token: "\(index)", for: "deleted")
            }
            try await storage.delete(for: "deleted")
            try await storage.store(token: "x", for: "old name")
            try await storage.commit([.rename("old name", to: "new name")])
            try expect(
                try await storage.list().items.map(\.key), is: ["new name", "replaced"], "the keys listed")
        },
        ConformanceCheck("a prefix selects keys by bytes") { scene in
            let storage = try await scene.storage()
            let names = ["session/1", "session/2", "session", "sess", "Session/1", "e\u{301}", "é", "%", "_"]
            for name in names { try await storage.store(token: "x", for: TokenKey(name)) }
            func keys(_ prefix: String) async throws -> [TokenKey] {
                try await storage.list(TokenQuery(prefix: prefix)).items.map(\.key)
            }
            try expect(try await keys("session/"), is: ["session/1", "session/2"], "session/")
            try expect(try await keys("session"), is: ["session", "session/1", "session/2"], "session")
            try expect(try await keys("none"), is: [], "none")
            // The first byte of a decomposed é is an e; Swift's hasPrefix says no.
            try expect(try await keys("e"), is: ["e\u{301}"], "e")
            try expect(try await keys("é"), is: ["é"], "a composed é")
            try expect(try await keys("%"), is: ["%"], "a percent sign")
            try expect(try await keys("_"), is: ["_"], "an underscore")
            try expect(try await keys("*"), is: [], "an asterisk")
            try expect(try await keys("").count, is: names.count, "the number of all")
        },
        ConformanceCheck("attributes select items that have all of them exactly") { scene in
            let storage = try await scene.storage()
            try await storage.store(token: "1", for: "both", attributes: ["account": "work", "host": "a"])
            try await storage.store(token: "2", for: "one", attributes: ["account": "work"])
            try await storage.store(token: "3", for: "other", attributes: ["account": "home", "host": "a"])
            try await storage.store(token: "4", for: "none")
            try await storage.store(
                token: "5", for: "composed", attributes: ["name": Samples.composed])
            func keys(_ attributes: TokenAttributes) async throws -> [TokenKey] {
                try await storage.list(TokenQuery(attributes: attributes)).items.map(\.key)
            }
            try expect(try await keys(["account": "work"]), is: ["both", "one"], "account = work")
            try expect(try await keys(["account": "work", "host": "a"]), is: ["both"], "account and host")
            try expect(try await keys(["account": "wor"]), is: [], "account = wor")
            try expect(try await keys(["account": "WORK"]), is: [], "account = WORK")
            try expect(try await keys(["account": ""]), is: [], "an empty account")
            try expect(try await keys(["name": Samples.composed]), is: ["composed"], "the same bytes")
            try expect(try await keys(["name": Samples.decomposed]), is: [], "other bytes of the same text")
        },
        ConformanceCheck("prefix and attributes select together") { scene in
            let storage = try await scene.storage()
            try await storage.store(token: "1", for: "a/1", attributes: ["kind": "x"])
            try await storage.store(token: "2", for: "a/2", attributes: ["kind": "y"])
            try await storage.store(token: "3", for: "b/1", attributes: ["kind": "x"])
            let listing = try await storage.list(TokenQuery(prefix: "a/", attributes: ["kind": "x"]))
            try expect(listing.items.map(\.key), is: ["a/1"], "the keys listed")
        },
        ConformanceCheck("a query follows replaced attributes") { scene in
            let storage = try await scene.storage()
            try await storage.store(token: "1", for: "key", attributes: ["kind": "old"])
            try await storage.store(token: "1", for: "key", attributes: ["kind": "new"])
            let old = try await storage.list(TokenQuery(attributes: ["kind": "old"]))
            let new = try await storage.list(TokenQuery(attributes: ["kind": "new"]))
            try expect(old.items.count, is: 0, "items with the old attribute")
            try expect(new.items.map(\.key), is: ["key"], "items with the new attribute")
        },
        ConformanceCheck("a query outside its limits is invalidArgument") { scene in
            let storage = try await scene.storage()
            let long = String(repeating: "p", count: 1_025)
            try await expectRefusal(.invalidArgument, of: "a long prefix") {
                try await storage.list(TokenQuery(prefix: long))
            }
            try await expectRefusal(.invalidArgument, of: "a long attribute") {
                try await storage.list(TokenQuery(attributes: ["name": long]))
            }
        },
        ConformanceCheck("a list reports the same as metadata(for:)") { scene in
            let storage = try await scene.storage()
            for policy in storage.supportedPolicies {
                try await storage.store(
                    token: "x", for: TokenKey(policy.rawValue), policy: policy, label: policy.rawValue)
            }
            for listed in try await storage.list().items {
                let metadata = try await storage.metadata(for: listed.key)
                try expect(metadata, is: listed, "metadata(for:) of \(listed.key)")
            }
        },
    ]
}
