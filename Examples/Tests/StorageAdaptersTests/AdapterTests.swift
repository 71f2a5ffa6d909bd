import Foundation
import Shapes
import Synchronization
import Testing
import TokenVault

@testable import StorageAdapters

/// What each SDK expects of its storage, and what none of them may do: take a locked vault for an empty one.
@Suite struct AdapterTests {
    private let vault = InMemoryVault()
    private var storage: InMemoryTokenStorage { vault.storage(service: "com.example.app") }

    @Test func supabase() throws {
        let adapter: any AuthLocalStorage = SupabaseVaultStorage(storage: storage.blocking)
        #expect(try adapter.retrieve(key: "session") == nil)
        try adapter.store(key: "session", value: Data([0, 1, 255]))
        #expect(try adapter.retrieve(key: "session") == Data([0, 1, 255]))
        vault.setLockState(.locked)
        #expect(throws: TokenStorageError.self) { try adapter.retrieve(key: "session") }
        vault.setLockState(.unlocked)
        try adapter.remove(key: "session")
        try adapter.remove(key: "session")
        #expect(try adapter.retrieve(key: "session") == nil)
    }

    @Test func auth0() throws {
        let adapter: any CredentialsStorage = Auth0VaultStorage(storage: storage.blocking)
        #expect(throws: NoEntry.self) { try adapter.getEntry(forKey: "credentials") }
        try adapter.setEntry(Data("fake".utf8), forKey: "credentials")
        try adapter.setEntry(Data("fake 2".utf8), forKey: "other")
        #expect(try adapter.getEntry(forKey: "credentials") == Data("fake".utf8))
        vault.setLockState(.locked)
        #expect(throws: TokenStorageError.self) { try adapter.getEntry(forKey: "credentials") }
        vault.setLockState(.unlocked)
        try adapter.deleteEntry(forKey: "credentials")
        #expect(throws: NoEntry.self) { try adapter.getEntry(forKey: "credentials") }
        try adapter.deleteAllEntries()
        #expect(throws: NoEntry.self) { try adapter.getEntry(forKey: "other") }
    }

    @Test func netifyAuth() async throws {
        let adapter: any NetifyTokenStorage = NetifyVaultStorage(storage: storage)
        let token = NetifyTokenInfo(
            accessToken: "fake", refreshToken: "fake too",
            accessTokenExpiration: Date(timeIntervalSince1970: 2e9))
        await #expect(throws: NoEntry.self) { try await adapter.load(forKey: "user") }
        try await adapter.save(tokenInfo: token, forKey: "user")
        #expect(try await adapter.load(forKey: "user") == token)
        try await adapter.delete(forKey: "user")
        await #expect(throws: NoEntry.self) { try await adapter.load(forKey: "user") }
    }

    @Test func modelContextProtocol() {
        let reports = Mutex<[TokenStorageError.Code]>([])
        let adapter: any MCPTokenStorage = MCPVaultStorage(storage: storage.blocking) { error in
            reports.withLock { $0.append(error.code) }
        }
        let token = OAuthAccessToken(token: "fake", refreshToken: "fake too")
        #expect(adapter.load() == nil)
        adapter.save(token)
        #expect(adapter.load() == token)
        #expect(reports.withLock { $0 }.isEmpty)
        vault.setLockState(.locked)
        #expect(adapter.load() == nil)
        #expect(reports.withLock { $0 } == [.locked])
        vault.setLockState(.unlocked)
        adapter.clear()
        #expect(adapter.load() == nil)
    }

    @Test func oauthenticator() async throws {
        let login = Login(accessToken: "fake", refreshToken: "fake too")
        let adapter = LoginStorage.vault(storage, account: "work")
        #expect(try await adapter.retrieveLogin() == nil)
        try await adapter.storeLogin(login)
        #expect(try await adapter.retrieveLogin() == login)
        #expect(try await LoginStorage.vault(storage, account: "home").retrieveLogin() == nil)
        try await adapter.clearLogin()
        #expect(try await adapter.retrieveLogin() == nil)
    }

    @CredentialActor private final class Delegate: OktaTokenStorageDelegate {
        var told: [String] = []
        func token(defaultChanged id: String?) { told.append("default \(id ?? "none")") }
        func token(added id: String) { told.append("added \(id)") }
        func token(removed id: String) { told.append("removed \(id)") }
        func token(replaced id: String) { told.append("replaced \(id)") }
    }

    @CredentialActor @Test func okta() throws {
        let adapter: any OktaTokenStorage = OktaVaultStorage(storage: storage.blocking)
        let delegate = Delegate()
        adapter.delegate = delegate
        let token = OktaToken(id: "a", accessToken: "fake", refreshToken: "fake too")
        try adapter.add(token: token, metadata: nil, security: [])
        #expect(throws: TokenStorageError.self) { try adapter.add(token: token, metadata: nil, security: []) }
        #expect(adapter.allIDs == ["a"])
        #expect(try adapter.get(token: "a", prompt: nil, authenticationContext: nil) == token)
        try adapter.setMetadata(OktaTokenMetadata(id: "a", tags: ["role": "admin"]))
        #expect(try adapter.metadata(for: "a").tags == ["role": "admin"])
        var newer = token
        newer.accessToken = "fake 2"
        try adapter.replace(token: "a", with: newer, security: [])
        #expect(try adapter.get(token: "a", prompt: nil, authenticationContext: nil) == newer)
        #expect(throws: NoEntry.self) { try adapter.replace(token: "b", with: newer, security: []) }
        try adapter.setDefaultTokenID("a")
        #expect(adapter.defaultTokenID == "a")
        vault.setLockState(.locked)
        #expect(throws: TokenStorageError.self) {
            try adapter.get(token: "a", prompt: nil, authenticationContext: nil)
        }
        vault.setLockState(.unlocked)
        try adapter.remove(id: "a")
        #expect(throws: NoEntry.self) { try adapter.metadata(for: "a") }
        #expect(delegate.told == ["added a", "replaced a", "default a", "removed a"])
    }
}
