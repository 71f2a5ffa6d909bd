import TokenVault

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

extension TokenStorageConformance {
    static let renameChecks: [ConformanceCheck] = [
        ConformanceCheck("a rename keeps the secret and every detail") { scene in
            let storage = try await scene.storage()
            let details = TokenDetails(
                policy: storage.supportedPolicies.first, label: "label", attributes: ["a": "b"],
                expiry: .at(Date(timeIntervalSince1970: 2_000_000_000)))
            let first = try await storage.store(Secret(utf8: "kept"), for: "old", details: details)
            let before = try require(try await storage.metadata(for: "old"), "metadata")
            let commit = try await storage.commit([.rename("old", to: "new")])
            try expect(commit.existed, is: [true], "existed")
            try expect(try await storage.item(for: "old"), is: nil, "the old key")
            let item = try require(try await storage.item(for: "new"), "the new key's item")
            try expect(item.secret, is: Secret(utf8: "kept"), "the secret")
            var expected = before
            expected.key = "new"
            expected.modified = item.metadata.modified
            expected.generation = try require(commit.generation, "a generation")
            try expect(item.metadata, is: expected, "the metadata")
            try expect(item.metadata.generation > first, "a generation above \(first)")
        },
        ConformanceCheck("a rename of an absent key is notFound") { scene in
            let storage = try await scene.storage()
            try await expectRefusal(.notFound, of: "rename") {
                try await storage.commit([.rename("absent", to: "new")])
            }
            try expect(try await storage.contains(for: "new"), is: false, "whether the new key is there")
        },
        ConformanceCheck("a rename to a taken key is alreadyExists and changes neither") { scene in
            let storage = try await scene.storage()
            try await storage.store(token: "one", for: "one")
            try await storage.store(token: "two", for: "two")
            let before = try await storage.list()
            try await expectRefusal(.alreadyExists, of: "rename") {
                try await storage.commit([.rename("one", to: "two")])
            }
            try expect(try await storage.list(), is: before, "the listing")
            try expect(try await storage.retrieve(for: "one"), is: "one", "the one")
            try expect(try await storage.retrieve(for: "two"), is: "two", "the other")
        },
        ConformanceCheck("a key can be renamed to other bytes of the same text, and back") { scene in
            let storage = try await scene.storage()
            let composed = TokenKey(Samples.composed)
            let decomposed = TokenKey(Samples.decomposed)
            try await storage.store(token: "x", for: composed)
            try await storage.commit([.rename(composed, to: decomposed)])
            try expect(try await storage.retrieve(for: composed), is: nil, "the composed key")
            try expect(try await storage.retrieve(for: decomposed), is: "x", "the decomposed key")
            try await storage.commit([.rename(decomposed, to: composed)])
            try expect(try await storage.retrieve(for: composed), is: "x", "the composed key")
        },
        ConformanceCheck("a renamed key's old name can be used again") { scene in
            let storage = try await scene.storage()
            try await storage.store(token: "moved", for: "old")
            let commit = try await storage.commit([.rename("old", to: "new")])
            let again = try await storage.store(token: "fresh", for: "old")
            try expect(again > (commit.generation ?? 0), "a generation above the rename's")
            try expect(try await storage.retrieve(for: "old"), is: "fresh", "the old name")
            try expect(try await storage.retrieve(for: "new"), is: "moved", "the new name")
        },
    ]

    static let deleteChecks: [ConformanceCheck] = [
        ConformanceCheck("delete is idempotent and reports whether the item existed") { scene in
            let storage = try await scene.storage()
            try expect(try await storage.delete(for: "key"), is: false, "whether it was there")
            try await storage.store(token: "x", for: "key")
            try expect(try await storage.delete(for: "key"), is: true, "whether it was there")
            try expect(try await storage.delete(for: "key"), is: false, "whether it was there")
            try expect(try await storage.item(for: "key"), is: nil, "the item")
        },
        ConformanceCheck("a key stored after a delete is a new item") { scene in
            let storage = try await scene.storage()
            try await storage.store(token: "x", for: "key", label: "label", attributes: ["a": "b"])
            try await storage.delete(for: "key")
            try await storage.store(token: "y", for: "key")
            let metadata = try require(try await storage.metadata(for: "key"), "metadata")
            try expect(metadata.label, is: nil, "the label")
            try expect(metadata.attributes, is: [:], "the attributes")
            try expect(metadata.created, is: metadata.modified, "created, as modified")
        },
        ConformanceCheck("deleteAll deletes every item and reports their number") { scene in
            let storage = try await scene.storage()
            try expect(try await storage.deleteAll(), is: 0, "the count for an empty service")
            for index in 0..<7 { try await storage.store(token: "x", for: TokenKey("\(index)")) }
            try expect(try await storage.deleteAll(), is: 7, "the count")
            try expect(try await storage.list(), is: TokenListing(items: []), "the listing")
            for index in 0..<7 {
                try expect(try await storage.secret(for: TokenKey("\(index)")), is: nil, "a deleted key")
            }
            try expect(try await storage.deleteAll(), is: 0, "the count the second time")
        },
    ]
}
