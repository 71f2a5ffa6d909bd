import Testing
import TokenVault

@Suite struct CodableTests {
    struct Session: Codable, Equatable {
        var access: String
        var refresh: String?
        var scopes: [String]
    }

    private let session = Session(access: "not-a-token", refresh: nil, scopes: ["read", "é"])

    @Test func aValueIsStoredAsJSON() async throws {
        let storage: any TokenStorage = InMemoryTokenStorage(service: "com.example.app")
        let name = "session"
        try await storage.store(encoding: session, for: TokenKey(name))
        #expect(try await storage.retrieve(Session.self, for: TokenKey(name)) == session)
        #expect(try await storage.retrieve(Session.self, for: "session") == session)
        #expect(try await storage.retrieve(Session.self, for: "absent") == nil)
        #expect(
            try await storage.retrieve(for: "session") == #"{"access":"not-a-token","scopes":["read","é"]}"#)
    }

    @Test func theBlockingViewDoesTheSame() throws {
        let storage: any BlockingTokenStorage = InMemoryTokenStorage(service: "com.example.app").blocking
        try storage.store(encoding: session, for: "session")
        #expect(try storage.retrieve(Session.self, for: "session") == session)
    }

    @Test func whatIsNotOfTheTypeSaysSoAndNotWhat() async throws {
        let storage = InMemoryTokenStorage(service: "com.example.app")
        try await storage.store(token: "zebra", for: "key")
        let error = await #expect(throws: TokenStorageError.self) {
            try await storage.retrieve(Session.self, for: "key")
        }
        #expect(error?.code == .decodingFailed)
        #expect(error.map { "\($0)".contains("zebra") } == false)
    }

    @Test func whatCannotBeEncodedSaysSoAndNotWhat() async throws {
        let storage = InMemoryTokenStorage(service: "com.example.app")
        let error = await #expect(throws: TokenStorageError.self) {
            try await storage.store(encoding: ["zebra": Double.nan], for: "key")
        }
        #expect(error?.code == .encodingFailed)
        #expect(error.map { "\($0)".contains("zebra") } == false)
        #expect(try await storage.contains(for: "key") == false)
    }
}
