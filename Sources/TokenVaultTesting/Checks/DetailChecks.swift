import TokenVault

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

extension TokenStorageConformance {
    static let detailChecks: [ConformanceCheck] = [
        ConformanceCheck("a new item takes the defaults") { scene in
            let storage = try await scene.storage()
            try await storage.store(token: "x", for: "key")
            let metadata = try require(try await storage.metadata(for: "key"), "metadata")
            try expect(metadata.key, is: "key", "the key")
            try expect(metadata.policy, is: storage.defaultPolicy, "the policy")
            try expect(metadata.label, is: nil, "the label")
            try expect(metadata.attributes, is: [:], "the attributes")
            try expect(metadata.expires, is: nil, "the expiry")
            try expect(metadata.created, is: metadata.modified, "created, as modified")
        },
        ConformanceCheck("metadata, item and list report the same details") { scene in
            let storage = try await scene.storage()
            try await storage.store(Secret([1]), for: "key", details: full)
            let metadata = try require(try await storage.metadata(for: "key"), "metadata")
            try expectFull(metadata)
            try expect(try await storage.item(for: "key")?.metadata, is: metadata, "the item's metadata")
            try expect(try await storage.list().items, is: [metadata], "the listed metadata")
        },
        ConformanceCheck("a replace keeps label, attributes, policy, expiry and creation date") { scene in
            let storage = try await scene.storage()
            let policy = try await otherPolicy(of: storage)
            var details = full
            details.policy = policy
            try await storage.store(Secret([1]), for: "key", details: details)
            let before = try require(try await storage.metadata(for: "key"), "metadata")
            try await storage.store(token: "new", for: "key")
            let after = try require(try await storage.metadata(for: "key"), "metadata")
            try expectFull(after)
            try expect(after.policy, is: policy, "the policy")
            try expect(after.created, is: before.created, "the creation date")
            try expect(after.modified >= before.modified, "a modification date that is not before the last")
            try expect(try await storage.retrieve(for: "key"), is: "new", "the new secret")
        },
        ConformanceCheck("a replace sets the details that are given and keeps the others") { scene in
            let storage = try await scene.storage()
            try await storage.store(Secret([1]), for: "key", details: full)
            try await storage.store(Secret([2]), for: "key", details: TokenDetails(label: "new label"))
            var metadata = try require(try await storage.metadata(for: "key"), "metadata")
            try expect(metadata.label, is: "new label", "the label")
            try expect(metadata.attributes, is: attributes, "the attributes")
            let fewer: TokenAttributes = ["only": "one"]
            try await storage.store(Secret([3]), for: "key", details: TokenDetails(attributes: fewer))
            metadata = try require(try await storage.metadata(for: "key"), "metadata")
            try expect(metadata.label, is: "new label", "the label")
            try expect(metadata.attributes, is: fewer, "the attributes, all replaced")
            try expect(metadata.expires, is: expiry, "the expiry")
        },
        ConformanceCheck("empty details remove what was there") { scene in
            let storage = try await scene.storage()
            try await storage.store(Secret([1]), for: "key", details: full)
            let none = TokenDetails(label: "", attributes: [:], expiry: .never)
            try await storage.store(Secret([2]), for: "key", details: none)
            let metadata = try require(try await storage.metadata(for: "key"), "metadata")
            try expect(metadata.label, is: nil, "the label")
            try expect(metadata.attributes, is: [:], "the attributes")
            try expect(metadata.expires, is: nil, "the expiry")
        },
        ConformanceCheck("an update changes details and keeps the secret") { scene in
            let storage = try await scene.storage()
            let first = try await storage.store(token: "kept", for: "key", label: "old")
            let before = try require(try await storage.metadata(for: "key"), "metadata")
            let commit = try await storage.commit([.update("key", details: full)])
            let after = try require(try await storage.metadata(for: "key"), "metadata")
            try expectFull(after)
            try expect(after.created, is: before.created, "the creation date")
            try expect(commit.existed, is: [true], "existed")
            try expect(after.generation, is: try require(commit.generation, "a generation"), "the generation")
            try expect(after.generation > first, "a generation above the store's")
            try expect(try await storage.retrieve(for: "key"), is: "kept", "the secret")
        },
        ConformanceCheck("an update without details keeps all of them") { scene in
            let storage = try await scene.storage()
            try await storage.store(Secret([1]), for: "key", details: full)
            try await storage.commit([.update("key", details: TokenDetails())])
            try expectFull(try require(try await storage.metadata(for: "key"), "metadata"))
        },
        ConformanceCheck("an update of an absent key is notFound and makes nothing") { scene in
            let storage = try await scene.storage()
            try await expectRefusal(.notFound, of: "update") {
                try await storage.commit([.update("absent", details: full)])
            }
            try expect(try await storage.list().items.count, is: 0, "listed items")
        },
        ConformanceCheck("an expired item is reported as expired and can still be read") { scene in
            let storage = try await scene.storage()
            let past = Date(timeIntervalSince1970: 86_400)
            try await storage.store(token: "old", for: "key", expiry: .at(past))
            let metadata = try require(try await storage.metadata(for: "key"), "metadata")
            try expect(metadata.expires, is: past, "the expiry")
            try expect(metadata.isExpired(at: metadata.modified), "an expired item")
            try expect(try await storage.retrieve(for: "key"), is: "old", "the secret")
            try expect(try await storage.list().items.count, is: 1, "listed items")
        },
        ConformanceCheck("a replaced secret does not inherit an expiry in the past") { scene in
            let storage = try await scene.storage()
            let past = Date(timeIntervalSince1970: 86_400)
            try await storage.store(token: "old", for: "key", expiry: .at(past))
            try await storage.commit([.update("key", details: TokenDetails(label: "a label"))])
            try expect(
                try await storage.metadata(for: "key")?.expires, is: past, "the expiry of the same secret")
            try await storage.store(token: "new", for: "key")
            let metadata = try require(try await storage.metadata(for: "key"), "metadata")
            try expect(metadata.expires, is: nil, "the expiry")
            try expect(metadata.label, is: "a label", "the label")
        },
        ConformanceCheck("expiries of years 1 to 9999 are kept, others are invalidArgument") { scene in
            let storage = try await scene.storage()
            for seconds in [-62_135_596_800, -1, 0, 1, 253_402_300_799] as [Double] {
                let date = Date(timeIntervalSince1970: seconds)
                try await storage.store(token: "x", for: "key", expiry: .at(date))
                try expect(try await storage.metadata(for: "key")?.expires, is: date, "the expiry")
            }
            for seconds in [-62_135_596_801, 253_402_300_800, .nan, .infinity, -.infinity] as [Double] {
                try await expectRefusal(.invalidArgument, of: "an expiry at \(seconds)") {
                    let date = Date(timeIntervalSince1970: seconds)
                    return try await storage.store(token: "y", for: "key", expiry: .at(date))
                }
            }
            try expect(try await storage.retrieve(for: "key"), is: "x", "the item that was there")
        },
        ConformanceCheck("labels are kept byte for byte and have limits") { scene in
            let storage = try await scene.storage()
            let longest = String(repeating: "é", count: 512)
            for label in [Samples.composed, Samples.decomposed, " ", "👩🏽‍🚀 \"quoted\"", longest] {
                try await storage.store(token: "x", for: "key", label: label)
                let found = try await storage.metadata(for: "key")?.label
                try expect(bytesOf: found, are: label, "the label")
            }
            for label in [longest + "a", "a\nb", "a\u{0}", "\u{85}"] {
                try await expectRefusal(.invalidArgument, of: "a label outside the limits") {
                    try await storage.store(token: "y", for: "key", label: label)
                }
            }
            let found = try require(try await storage.item(for: "key"), "the item")
            try expect(found.secret, is: Secret(utf8: "x"), "the secret")
            try expect(bytesOf: found.metadata.label, are: longest, "the label")
        },
        ConformanceCheck("attributes are kept byte for byte") { scene in
            let storage = try await scene.storage()
            var attributes: TokenAttributes = ["empty": "", "\"": "'", "日本": "語", " ": " ", "=": "a=b,c;d"]
            attributes[Samples.composed] = "composed"
            attributes[Samples.decomposed] = "decomposed"
            attributes["value"] = Samples.decomposed
            attributes[""] = "unnamed"
            attributes["a\nb"] = "b\u{0}\n"
            attributes["tokenvault:base64:YQ=="] = "tokenvault:base64:"
            try await storage.store(token: "x", for: "key", attributes: attributes)
            let found = try require(try await storage.metadata(for: "key"), "metadata").attributes
            try expect(found, is: attributes, "the attributes")
        },
        ConformanceCheck("64 attributes are kept, 65 are invalidArgument") { scene in
            let storage = try await scene.storage()
            let most = TokenAttributes((0..<64).map { ("name \($0)", "value \($0)") })
            try await storage.store(token: "x", for: "key", attributes: most)
            try expect(try await storage.metadata(for: "key")?.attributes, is: most, "the attributes")
            var more = most
            more["one more"] = ""
            try await expectRefusal(.invalidArgument, of: "65 attributes") {
                try await storage.store(token: "y", for: "key", attributes: more)
            }
            try expect(try await storage.retrieve(for: "key"), is: "x", "the item that was there")
        },
        ConformanceCheck("attributes outside their limits are invalidArgument or tooLarge") { scene in
            let storage = try await scene.storage()
            let long = String(repeating: "v", count: 1_024)
            let bad: [TokenAttributes] = [
                [long + "v": "x"], ["a": long + "v"],
            ]
            for attributes in bad {
                try await expectRefusal(.invalidArgument, of: "an attribute outside the limits") {
                    try await storage.store(token: "x", for: "key", attributes: attributes)
                }
            }
            // 60 names of 4 bytes with values of 1,020: 60 KiB exactly.
            var full = TokenAttributes((1_000..<1_060).map { ("\($0)", String(long.dropLast(4))) })
            try await storage.store(token: "x", for: "key", attributes: full)
            try expect(try await storage.metadata(for: "key")?.attributes, is: full, "60 KiB of attributes")
            full["1000"] = String(long.dropLast(3))
            try await expectRefusal(.tooLarge, of: "60 KiB and a byte") {
                try await storage.store(token: "y", for: "key", attributes: full)
            }
            try expect(try await storage.retrieve(for: "key"), is: "x", "the item that was there")
            let longest: TokenAttributes = [long: "x", "a": long]
            try await storage.store(token: "z", for: "longest", attributes: longest)
            try expect(
                try await storage.metadata(for: "longest")?.attributes, is: longest,
                "names and values of 1,024 bytes")
        },
    ]

    private static let attributes: TokenAttributes = ["account": "work", "host": "example.com"]
    private static let expiry = Date(timeIntervalSince1970: 2_000_000_000)
    private static let full = TokenDetails(
        label: "A label", attributes: attributes, expiry: .at(expiry))

    private static func expectFull(
        _ metadata: TokenMetadata, file: String = #fileID, line: Int = #line
    ) throws {
        try expect(metadata.label, is: "A label", "the label", file: file, line: line)
        try expect(metadata.attributes, is: attributes, "the attributes", file: file, line: line)
        try expect(metadata.expires, is: expiry, "the expiry", file: file, line: line)
    }

    /// A supported policy that is not the default, or the default if there is no other.
    private static func otherPolicy(of storage: any TokenStorage) async throws -> AccessPolicy {
        AccessPolicy.allCases.first {
            $0 != storage.defaultPolicy && storage.supportedPolicies.contains($0)
        } ?? storage.defaultPolicy
    }
}
