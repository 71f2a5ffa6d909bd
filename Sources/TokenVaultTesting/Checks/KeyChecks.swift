import TokenVault

extension TokenStorageConformance {
    static let keyChecks: [ConformanceCheck] = [
        ConformanceCheck("keys that Swift calls equal but differ in their bytes are two keys") { scene in
            let storage = try await scene.storage()
            let composed = TokenKey(Samples.composed)
            let decomposed = TokenKey(Samples.decomposed)
            try await storage.store(token: "composed", for: composed)
            try expect(try await storage.retrieve(for: decomposed), is: nil, "the decomposed key")
            try await storage.store(token: "decomposed", for: decomposed)
            try expect(try await storage.retrieve(for: composed), is: "composed", "the composed key")
            try expect(try await storage.retrieve(for: decomposed), is: "decomposed", "the decomposed key")
            try await storage.delete(for: composed)
            try expect(try await storage.retrieve(for: decomposed), is: "decomposed", "the decomposed key")
            try expect(try await storage.list().items.map(\.key), is: [decomposed], "the keys listed")
        },
        ConformanceCheck("keys can have characters of every writing system") { scene in
            try await keepsApart(scene, Samples.writingSystems)
        },
        ConformanceCheck("keys can have quotes, slashes, wildcards and shell characters") { scene in
            try await keepsApart(scene, Samples.awkwardNames)
        },
        ConformanceCheck("keys that differ in case or spaces are two keys") { scene in
            try await keepsApart(
                scene, ["key", "Key", "KEY", " key", "key ", "k ey", "ﬀ", "ff", "ß", "ss", "İ", "i"])
        },
        ConformanceCheck("keys with the same beginning are two keys") { scene in
            try await keepsApart(scene, (1...40).map { String(repeating: "a", count: $0) })
        },
        ConformanceCheck("keys can have invisible characters that are not controls") { scene in
            try await keepsApart(
                scene,
                [
                    "a", "a\u{a0}", "a\u{200b}", "a\u{200d}", "a\u{2028}", "a\u{2029}", "\u{feff}a",
                    "a\u{ad}", "\u{202e}a",
                ])
        },
        ConformanceCheck("a key of 1,024 bytes is usable, whatever its characters") { scene in
            let storage = try await scene.storage()
            for character in ["a", "é", "🔑"] {
                let name = String(repeating: character, count: 1_024 / character.utf8.count)
                try await storage.store(token: character, for: TokenKey(name))
                try expect(
                    try await storage.retrieve(for: TokenKey(name)), is: character, "the long key's token")
                let shorter = TokenKey(String(name.dropLast()))
                try expect(try await storage.retrieve(for: shorter), is: nil, "a key one character shorter")
            }
            try expect(try await storage.list().items.count, is: 3, "listed items")
        },
        ConformanceCheck("a key of more than 1,024 bytes is invalidKey") { scene in
            try await refuses(scene, TokenKey(String(repeating: "a", count: 1_025)))
            // 257 characters, 1,028 bytes: bytes are what counts.
            try await refuses(scene, TokenKey(String(repeating: "🔑", count: 257)))
        },
        ConformanceCheck("an empty key is a key") { scene in try await keepsApart(scene, ["", " ", "a"]) },
        ConformanceCheck("a newline in a key is kept") { scene in
            try await keepsApart(scene, ["ab", "a\nb", "a\r\nb", "a\n", "\n", "a", "a\\nb", "a\n\nb"])
        },
        ConformanceCheck("keys can have every control character") { scene in
            try await keepsApart(scene, ["ab"] + Samples.controls.map { "a\($0)b" })
        },
        ConformanceCheck("services of any characters are separate") { scene in
            let services = ["s", "", "\n", "s\n", "s\r\n", "s\u{0}", "s\u{9f}", "s "]
            for service in services {
                try await scene.storage(service).store(token: service, for: "key")
            }
            for service in services {
                let storage = try await scene.storage(service)
                try expect(
                    try await storage.retrieve(for: "key"), is: service, "the token of its own service")
                let listed = try await storage.list().items.map { TokenKey($0.service) }
                try expect(listed, is: [TokenKey(scene.service(service))], "the service listed")
            }
        },
        ConformanceCheck("a commit with one invalid key changes nothing") { scene in
            let storage = try await scene.storage()
            let bad = TokenKey(String(repeating: "a", count: 1_025))
            try await expectRefusal(.invalidKey, of: "store") {
                try await storage.commit([.store(Secret([1]), for: "good"), .store(Secret([2]), for: bad)])
            }
            try expect(try await storage.secret(for: "good"), is: nil, "the good key")
            try await storage.store(token: "x", for: "good")
            try await expectRefusal(.invalidKey, of: "rename") {
                try await storage.commit([.rename("good", to: bad)])
            }
            try expect(try await storage.retrieve(for: "good"), is: "x", "the good key")
        },
    ]

    /// Stores a token of its own under each name and reads, lists and deletes each alone.
    private static func keepsApart(_ scene: TestFixture, _ names: [String]) async throws {
        let storage = try await scene.storage()
        for (index, name) in names.enumerated() {
            try await storage.store(token: "token \(index)", for: TokenKey(name))
        }
        for (index, name) in names.enumerated() {
            let item = try require(
                try await storage.item(for: TokenKey(name)), "an item for \(name.debugDescription)")
            try expect(
                item.secret, is: Secret(utf8: "token \(index)"), "the secret of \(name.debugDescription)")
            try expect(item.metadata.key, is: TokenKey(name), "the key of its metadata")
        }
        let keys = names.map { TokenKey($0) }
        try expect(try await storage.list().items.map(\.key), is: keys.sorted(), "the keys listed")
        for (index, key) in keys.enumerated() {
            try expect(
                try await storage.delete(for: key), is: true, "whether \(key.name.debugDescription) was there"
            )
            try expect(try await storage.list().items.count, is: keys.count - index - 1, "items left")
        }
    }

    /// Whether every call that takes a key refuses this one and stores nothing.
    private static func refuses(_ scene: TestFixture, _ key: TokenKey) async throws {
        let storage = try await scene.storage()
        try await expectRefusal(.invalidKey, of: "secret(for:)") { try await storage.secret(for: key) }
        try await expectRefusal(.invalidKey, of: "item(for:)") { try await storage.item(for: key) }
        try await expectRefusal(.invalidKey, of: "metadata(for:)") { try await storage.metadata(for: key) }
        let changes: [TokenChange] = [
            .store(Secret([1]), for: key), .update(key, details: TokenDetails(label: "x")), .delete(key),
            .rename(key, to: "new"), .rename("old", to: key),
        ]
        try await storage.store(token: "x", for: "old")
        for change in changes {
            try await expectRefusal(.invalidKey, of: "commit(_:)") { try await storage.commit([change]) }
        }
        try expect(try await storage.list().items.map(\.key), is: ["old"], "the keys listed")
    }
}

extension Samples {
    static let writingSystems = [
        "latin", "Straße", "Ελληνικά", "Кириллица", "Հայերեն", "עברית", "العربية", "فارسی", "हिन्दी", "বাংলা", "தமிழ்",
        "తెలుగు", "ไทย", "ລາວ", "မြန်မာ", "ខ្មែរ", "ქართული", "አማርኛ", "中文", "日本語", "ひらがな", "한국어", "𐌰𐌱𐌲", "𒀀𒀁",
        "👩🏽‍🚀", "🇪🇺", "e\u{301}\u{323}", "\u{10ffff}",
    ]

    static let awkwardNames = [
        "\"", "'", "`", "\\", "\\\\", "\"; DROP TABLE items; --", "%", "_", "*", "?", "[a-z]", "$(id)",
        "${HOME}", "|", "&&",
        ";", "<", ">", "#", "=", "a=b", "!", "~", ".", "..", "../../etc/passwd", "/", "//", "a/b", "a\\b",
        "C:\\key", "%2F",
        "%00", "\\0", "\\n", "\\u0000", "--", "-", "--help", "nil", "null", "{}", "[]", "<key>", "&amp;", ",",
        ":", "@",
        "https://example.com/?a=b#c", " ", "  ",
    ]
}
