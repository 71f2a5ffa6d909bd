import Testing
import TokenVault
import VaultAgent

extension TokenKey {
    fileprivate static let accessToken: TokenKey = "access_token"
}

/// The calls that auth code makes compile from `import TokenVault` alone, with no annotation and no
/// warning, and mean what they say.
@Suite struct CallShapesTests {
    /// Through the existential, as most SDKs hold a storage.
    func roundTrip(any storage: any TokenStorage, user: String) async throws {
        try await storage.store(token: "eyJ.not-a-token", for: "access_token")
        let token = try await storage.retrieve(for: "access_token")
        #expect(token == "eyJ.not-a-token")
        if let token = try await storage.retrieve(for: "access_token") { #expect(token.hasPrefix("eyJ")) }
        try await storage.delete(for: "access_token")
        #expect(try await storage.retrieve(for: "access_token") == nil)

        let name = "refresh_token"
        try await storage.store(token: "variable", for: TokenKey(name))
        #expect(try await storage.retrieve(for: TokenKey(name)) == "variable")
        #expect(try await storage.contains(for: TokenKey(name)))
        try await storage.delete(for: TokenKey(name))

        try await storage.store(token: "interpolated", for: "token-\(user)")
        #expect(try await storage.retrieve(for: "token-\(user)") == "interpolated")
        #expect(try await storage.contains(for: "token-\(user)"))
        try await storage.delete(for: "token-\(user)")

        try await storage.store(token: "member", for: .accessToken)
        #expect(try await storage.retrieve(for: .accessToken) == "member")
        let wasThere = try await storage.delete(for: .accessToken)
        #expect(wasThere)
        #expect(try await storage.contains(for: .accessToken) == false)
    }

    func roundTrip(some storage: some TokenStorage, user: String) async throws {
        try await storage.store(token: "literal", for: "access_token")
        #expect(try await storage.retrieve(for: "access_token") == "literal")
        let name = user + "/token"
        try await storage.store(token: "variable", for: TokenKey(name))
        #expect(try await storage.retrieve(for: TokenKey(name)) == "variable")
        try await storage.store(token: "interpolated", for: "\(user)-token")
        #expect(try await storage.retrieve(for: "\(user)-token") == "interpolated")
        try await storage.store(token: "member", for: .accessToken)
        #expect(try await storage.retrieve(for: .accessToken) == "member")
        try await storage.deleteAll()
    }

    @Test func throughAny() async throws {
        try await roundTrip(any: InMemoryTokenStorage(service: "com.example.app"), user: "ada")
    }

    @Test func throughSome() async throws {
        try await roundTrip(some: InMemoryTokenStorage(service: "com.example.app"), user: "ada")
    }

    @Test func throughTheConcreteType() async throws {
        let storage = InMemoryTokenStorage(service: "com.example.app")
        let name = "name"
        try await storage.store(token: "literal", for: "access_token")
        try await storage.store(token: "variable", for: TokenKey(name))
        try await storage.store(token: "interpolated", for: "\(name)-token")
        try await storage.store(token: "member", for: .accessToken)
        #expect(try await storage.retrieve(for: "access_token") == "member")
        #expect(try await storage.retrieve(for: TokenKey(name)) == "variable")
        #expect(try await storage.retrieve(for: "\(name)-token") == "interpolated")
        #expect(try await storage.list().items.map(\.key) == ["access_token", "name", "name-token"])
        #expect(try await storage.delete(for: "access_token"))
        #expect(try await !storage.delete(for: .accessToken))
    }

    @Test func throughTheBlockingView() throws {
        let storage: any BlockingTokenStorage = InMemoryTokenStorage(service: "com.example.app").blocking
        let name = "name"
        try storage.store(token: "literal", for: "access_token")
        try storage.store(token: "variable", for: TokenKey(name))
        try storage.store(token: "interpolated", for: "\(name)-token")
        let token = try storage.retrieve(for: "access_token")
        #expect(token == "literal")
        #expect(try storage.retrieve(for: TokenKey(name)) == "variable")
        #expect(try storage.retrieve(for: "\(name)-token") == "interpolated")
        #expect(try storage.retrieve(for: .accessToken) == "literal")
        #expect(try storage.contains(for: TokenKey(name)))
        try storage.delete(for: TokenKey(name))
        #expect(try storage.deleteAll() == 2)
    }

    @Test func textAndBytesHaveNamesOfTheirOwn() async throws {
        let storage = InMemoryTokenStorage(service: "com.example.app")
        try await storage.store(Secret([1, 2, 3]), for: "bytes")
        try await storage.store(token: "text", for: "text")
        // Without annotations, `retrieve` gives text and `secret` gives bytes.
        let text = try await storage.retrieve(for: "text")
        let bytes = try await storage.secret(for: "bytes")
        #expect(type(of: text) == String?.self)
        #expect(type(of: bytes) == Secret?.self)
        #expect("Bearer \(text ?? "")" == "Bearer text")
        #expect(bytes?.unprotectedBytes() == [1, 2, 3])
    }

    @Test func detailsAreGivenWhereTheyAreWanted() async throws {
        let storage: any TokenStorage = InMemoryTokenStorage(service: "com.example.app")
        try await storage.store(
            token: "x", for: "key", policy: .afterFirstUnlock, label: "Work",
            attributes: ["account": "work"])
        let metadata = try #require(try await storage.metadata(for: "key"))
        #expect(metadata.policy == .afterFirstUnlock)
        #expect(metadata.label == "Work")
        #expect(metadata.attributes["account"] == "work")
        let found = try await storage.list(TokenQuery(attributes: ["account": "work"]))
        #expect(found.items == [metadata])
    }

    @Test func generationsGuardARotation() async throws {
        let storage: any TokenStorage = InMemoryTokenStorage(service: "com.example.app")
        let key = "refresh"
        let first = try await storage.compareAndStore(Secret(utf8: "1"), for: TokenKey(key), expected: nil)
        let second = try await storage.compareAndStore(Secret(utf8: "2"), for: TokenKey(key), expected: first)
        #expect(second > first)
        #expect(try await storage.compareAndDelete(for: TokenKey(key), expected: second))
        let commit = try await storage.commit([
            .store(Secret(utf8: "access"), for: "access"), .store(Secret(utf8: "refresh"), for: "refresh"),
        ])
        #expect(commit.existed == [false, false])
    }

    @Test func changesAreASequence() async throws {
        let storage: any TokenStorage = InMemoryTokenStorage(service: "com.example.app")
        let changes = storage.changes()
        let generation = try await storage.store(token: "x", for: "key")
        for await change in changes {
            #expect(change == .stored("key", generation))
            break
        }
    }

    /// Swift would take the blocking method of such a type as the witness of the asynchronous one.
    @Test func noTypeIsBothBlockingAndAsynchronous() {
        let asynchronous: [any BridgedTokenStorage.Type] = [
            InMemoryTokenStorage.self, FileTokenStorage.self, SecretServiceTokenStorage.self,
            AgentTokenStorage.self, AgentOrFileTokenStorage.self,
        ]
        #expect(asynchronous.allSatisfy { !($0 is any BlockingTokenStorage.Type) })
        #expect(asynchronous.allSatisfy { !(blockingView(of: $0) is any TokenStorage.Type) })
    }

    private func blockingView<Storage: BridgedTokenStorage>(of type: Storage.Type) -> Any.Type {
        Storage.Blocking.self
    }
}
