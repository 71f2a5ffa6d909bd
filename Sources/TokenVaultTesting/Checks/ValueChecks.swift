import TokenVault

extension TokenStorageConformance {
    static let valueChecks: [ConformanceCheck] = [
        ConformanceCheck("an absent key is nil to every read") { scene in
            let storage = try await scene.storage()
            try expect(try await storage.secret(for: "absent"), is: nil, "secret(for:)")
            try expect(try await storage.item(for: "absent"), is: nil, "item(for:)")
            try expect(try await storage.metadata(for: "absent"), is: nil, "metadata(for:)")
            try expect(try await storage.retrieve(for: "absent"), is: nil, "retrieve(for:)")
            try expect(try await storage.contains(for: "absent"), is: false, "contains(for:)")
        },
        ConformanceCheck("every byte value is read back") { scene in
            let storage = try await scene.storage()
            let secret = Secret(Array(UInt8.min...UInt8.max))
            try await storage.store(secret, for: "bytes")
            try expect(try await storage.secret(for: "bytes"), is: secret, "secret(for:)")
            try expect(try await storage.item(for: "bytes")?.secret, is: secret, "item(for:)")
        },
        ConformanceCheck("an empty secret is a secret") { scene in
            let storage = try await scene.storage()
            try await storage.store(Secret([]), for: "empty")
            try expect(try await storage.secret(for: "empty")?.count, is: 0, "the length of an empty secret")
            try expect(try await storage.retrieve(for: "empty"), is: "", "the text of an empty secret")
            try expect(try await storage.contains(for: "empty"), is: true, "contains(for:)")
            try expect(try await storage.list().items.count, is: 1, "listed items")
            try expect(try await storage.delete(for: "empty"), is: true, "whether it was there to delete")
        },
        ConformanceCheck("an empty secret replaces one that is not") { scene in
            let storage = try await scene.storage()
            try await storage.store(token: "something", for: "key")
            try await storage.store(Secret([]), for: "key")
            try expect(try await storage.secret(for: "key")?.count, is: 0, "the length after the replace")
        },
        ConformanceCheck("secrets of every size are read back whole") { scene in
            let storage = try await scene.storage()
            let sizes = [1, 15, 16, 17, 255, 256, 4_095, 4_097, 8_191, 8_192, 8_193, 65_535, 65_536, 65_537]
            for size in sizes {
                try await storage.store(Samples.secret(size), for: TokenKey("size \(size)"))
            }
            for size in sizes {
                let found = try await storage.secret(for: TokenKey("size \(size)"))
                try expect(found, is: Samples.secret(size), "the secret of \(size) bytes")
            }
        },
        ConformanceCheck("a secret of 1 MiB is read back whole") { scene in
            let storage = try await scene.storage()
            let secret = Samples.secret(Secret.maximumLength)
            try await storage.store(secret, for: "large")
            try expect(try await storage.secret(for: "large"), is: secret, "the secret")
        },
        ConformanceCheck("a secret of 1 MiB and a byte is tooLarge") { scene in
            let storage = try await scene.storage()
            let secret = Samples.secret(Secret.maximumLength + 1)
            try await expectRefusal(.tooLarge, of: "a new item") {
                try await storage.store(secret, for: "large")
            }
            try expect(try await storage.secret(for: "large"), is: nil, "what was stored of it")
            try await storage.store(token: "before", for: "large")
            try await expectRefusal(.tooLarge, of: "a replace") {
                try await storage.store(secret, for: "large")
            }
            try expect(try await storage.retrieve(for: "large"), is: "before", "what was there before")
        },
        ConformanceCheck("text is read back byte for byte") { scene in
            let storage = try await scene.storage()
            let texts = [
                "line\nline\n", "\r\n", " spaces ", "\ttab\t", "nul\u{0}nul", "\u{feff}mark", "quote\"'`\\",
                Samples.composed, Samples.decomposed, "👩🏽‍🚀🇩🇪", "שלום", "{\"json\": [1, 2]}",
                "eyJhbGciOiJub25lIn0.e30.",
            ]
            for text in texts {
                try await storage.store(token: text, for: "text")
                try expect(bytesOf: try await storage.retrieve(for: "text"), are: text, "the text")
            }
        },
        ConformanceCheck("a replace leaves nothing of the old secret") { scene in
            let storage = try await scene.storage()
            for size in [5_000, 1, 70_000, 0, 300] {
                let secret = Samples.secret(size, seed: UInt8(size % 200))
                try await storage.store(secret, for: "key")
                try expect(try await storage.secret(for: "key"), is: secret, "the secret of \(size) bytes")
            }
        },
        ConformanceCheck("bytes that are not UTF-8 are notText and still bytes") { scene in
            let storage = try await scene.storage()
            let secret = Secret([0x66, 0xff, 0xfe, 0x00, 0xc3])
            try await storage.store(secret, for: "bytes")
            try await expectRefusal(.notText, of: "retrieve") { try await storage.retrieve(for: "bytes") }
            try expect(try await storage.secret(for: "bytes"), is: secret, "the bytes")
        },
        ConformanceCheck("a Codable value is read back, as its own type only") { scene in
            struct Session: Codable, Equatable {
                var access: String
                var scopes: [String]
            }
            let storage = try await scene.storage()
            let session = Session(access: "not-a-real-token", scopes: ["read", "écrire"])
            try await storage.store(encoding: session, for: "session")
            try expect(
                try await storage.retrieve(Session.self, for: "session"), is: session, "the value")
            try await expectRefusal(.decodingFailed, of: "another type") {
                try await storage.retrieve([Int].self, for: "session")
            }
            try expect(try await storage.retrieve(Session.self, for: "none"), is: nil, "an absent value")
        },
    ]
}
