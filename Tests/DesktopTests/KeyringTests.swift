import Testing
import TokenVault

/// The real keyring, as a program that uses the library meets it.
@Suite struct KeyringTests {
    @Test func whatIsStoredIsReadAndDeleted() async throws {
        let desktop = try PrivateDesktop.withKeyring()
        let storage = desktop.service().storage(service: "com.example.app")
        #expect(try await storage.lockState() == .unlocked)
        #expect(try await storage.retrieve(for: "access_token") == nil)
        let first = try await storage.store(token: "fake-token-1", for: "access_token")
        let second = try await storage.store(token: "fake-token-2", for: "access_token")
        #expect(second > first)
        #expect(try await storage.retrieve(for: "access_token") == "fake-token-2")
        let another = desktop.service().storage(service: "com.example.app").blocking
        #expect(try another.retrieve(for: "access_token") == "fake-token-2")
        #expect(try await storage.delete(for: "access_token"))
        #expect(try another.retrieve(for: "access_token") == nil)
    }

    @Test func aPersonFindsATokenWithSecretTool() throws {
        let desktop = try PrivateDesktop.withKeyring()
        let storage = desktop.service().storage(service: "com.example.app").blocking
        try storage.store(token: "fake-token", for: "access_token", label: "Example")
        #expect(
            try desktop.run("secret-tool", "lookup", "service", "com.example.app", "account", "access_token")
                == "fake-token")
    }
}
