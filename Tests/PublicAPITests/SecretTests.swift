import Testing
import TokenVault

@Suite struct SecretTests {
    private let secret = Secret(utf8: "zebra")

    @Test func aSecretNeverShowsItself() {
        #expect("\(secret)" == "<redacted>")
        #expect(String(describing: secret) == "<redacted>")
        #expect(String(reflecting: secret) == "<redacted>")
        #expect(secret.description == "<redacted>")
        #expect(secret.debugDescription == "<redacted>")
        #expect(Mirror(reflecting: secret).children.isEmpty)
        var dumped = ""
        dump(secret, to: &dumped)
        #expect(!dumped.contains("zebra"))
        #expect(!dumped.contains("122"))
    }

    @Test func whatHoldsASecretDoesNotShowItEither() async throws {
        struct Session {
            var user = "ada"
            var secret = Secret(utf8: "zebra")
        }
        let storage = InMemoryTokenStorage(service: "com.example.app")
        try await storage.store(secret, for: "key")
        let item = try #require(try await storage.item(for: "key"))
        let change = TokenChange.store(secret, for: "key")
        let holders: [Any] = [
            Session(), item, change, [secret], Optional(secret) as Any, ["key": secret], (secret, 1), storage,
        ]
        for holder in holders {
            var text = "\(holder) \(String(reflecting: holder))"
            dump(holder, to: &text)
            // The traces are text, an array of bytes, and hexadecimal digits.
            for trace in ["zebra", "122, 101", "7a6562"] { #expect(!text.contains(trace), "\(trace)") }
        }
    }

    @Test func aSecretKeepsItsBytes() {
        #expect(secret.count == 5)
        #expect(secret.unprotectedText() == "zebra")
        #expect(secret.unprotectedBytes() == Array("zebra".utf8))
        #expect(secret.withBytes { $0.byteCount } == 5)
        #expect(Secret([0xff]).unprotectedText() == nil)
        #expect(Secret([]).unprotectedText() == "")
        #expect(Secret([]).isEmpty)
        #expect(Secret(stride(from: UInt8(1), to: 4, by: 1)).unprotectedBytes() == [1, 2, 3])
    }

    @Test func secretsCompareByBytes() {
        #expect(secret == Secret("zebra".utf8))
        #expect(secret != Secret(utf8: "zebrb"))
        #expect(secret != Secret(utf8: "zebra "))
        #expect(Secret([]) == Secret(utf8: ""))
        #expect(Secret(utf8: "e\u{301}") != Secret(utf8: "é"))
    }

    @Test func aSecretIsNotCodable() {
        #expect(!(Secret.self is any Encodable.Type))
        #expect(!(Secret.self is any Decodable.Type))
    }
}
