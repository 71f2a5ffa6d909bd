import SystemPackage
import Testing
import TokenVault

@testable import TokenVaultAuth

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// Refreshes that several processes begin at once, each with a handle of its own.
@Suite struct LeaseTests {
    private let scene = Scene()

    @Test func managersOfOneVaultRefreshOnce() async throws {
        let vault = try SharedVault()
        let server = RotatingServer()
        let managers = try (0..<8).map { _ in scene.manager(server, storage: try vault.storage()) }
        try await managers[0].updateTokens(scene.tokens(goodFor: -1))
        let tokens = try await together(managers)
        #expect(tokens == ["access-1"])
        #expect(server.requests == 1)
    }

    @Test func managersOfAStorageWithoutAFileRefreshOnce() async throws {
        let server = RotatingServer()
        let managers = (0..<8).map { _ in scene.manager(server) }
        try await managers[0].updateTokens(scene.tokens(goodFor: -1))
        #expect(try await together(managers) == ["access-1"])
        #expect(server.requests == 1)
    }

    private func together(_ managers: [TokenManager]) async throws -> Set<String> {
        try await withThrowingTaskGroup(of: String.self) { group in
            for manager in managers { group.addTask { try await manager.validAccessToken() } }
            return try await group.reduce(into: []) { $0.insert($1) }
        }
    }

    @Test func whatAnotherProcessStoredIsTaken() async throws {
        let vault = try SharedVault()
        let server = RotatingServer()
        let first = scene.manager(server, storage: try vault.storage())
        let second = scene.manager(server, storage: try vault.storage())
        try await first.updateTokens(scene.tokens())
        #expect(try await second.validAccessToken() == "access-0")
        scene.clock.advance(by: 3_600)
        #expect(try await first.validAccessToken() == "access-1")
        #expect(try await second.validAccessToken() == "access-1")
        #expect(server.requests == 1)
    }

    @Test func accountsDoNotWaitForOneAnother() async throws {
        let vault = try SharedVault()
        let gate = Gate()
        let begun = Gate()
        let slow = RotatingServer { _ in
            begun.open()
            await gate.pass()
        }
        let work = scene.manager(slow, storage: try vault.storage())
        let home = scene.manager(RotatingServer(), storage: try vault.storage(), account: "home")
        try await work.updateTokens(scene.tokens(goodFor: -1))
        try await home.updateTokens(scene.tokens(goodFor: -1))
        let waiting = Task { try await work.validAccessToken() }
        await begun.pass()
        #expect(try await home.validAccessToken() == "access-1")
        gate.open()
        #expect(try await waiting.value == "access-1")
    }

    @Test func nobodySendsTheOldTokenWhileTheNewOneIsUnsaved() async throws {
        let vault = try SharedVault()
        let server = RotatingServer()
        let storage = try vault.storage()
        let manager = scene.manager(server, storage: HookedFile(base: storage, server: server))
        let other = scene.manager(server, storage: try vault.storage()) { $0.leaseTimeout = .milliseconds(1) }
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        await #expect { try await manager.validAccessToken() } throws: { error in
            if case TokenError.notSaved(let reason) = error { reason.code == .noSpace } else { false }
        }
        await #expect(throws: TokenError.timedOut) { try await other.validAccessToken() }
        #expect(server.requests == 1)
        #expect(try await manager.validAccessToken() == "access-1")
        #expect(try await other.validAccessToken() == "access-1")
        #expect(server.requests == 1)
    }

    @Test func anIntentOfSomebodyWhoIsGoneIsTriedOnce() async throws {
        let vault = try SharedVault()
        let server = RotatingServer(isForgiving: true)
        // The first ends at the moment that the answer is there: nothing after it happens, and its lease is let go of.
        let storage = try vault.storage()
        let manager = scene.manager(server, storage: storage)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        let text = try #require(try await storage.retrieve(for: "work/session"))
        let left = text.replacing(
            "{\"obtained\"",
            with: "{\"intent\":{\"isOver\":false,\"name\":\"gone\",\"until\":4e9},\"obtained\"")
        #expect(left != text)
        try await storage.store(token: left, for: "work/session")
        let next = scene.manager(server, storage: try vault.storage())
        #expect(try await next.validAccessToken() == "access-1")
        #expect(server.retriesOfUnknownOutcome == 1)
    }

    @Test func withoutALockAnIntentIsWaitedForUntilItsTimeIsOver() async throws {
        let scene = scene
        let server = RotatingServer(isForgiving: true)
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        let text = try #require(await scene.record())
        let until = scene.clock.now.timeIntervalSince1970 + 30
        let left = text.replacing(
            "{\"obtained\"",
            with: "{\"intent\":{\"isOver\":false,\"name\":\"gone\",\"until\":\(until)},\"obtained\"")
        try await scene.storage.store(token: left, for: "work/session")
        let call = Task { try await scene.manager(server).validAccessToken() }
        for _ in 0..<1_000 { await Task.yield() }
        #expect(server.requests == 0)
        scene.clock.advance(by: 31)
        #expect(try await call.value == "access-1")
        #expect(server.retriesOfUnknownOutcome == 1)
    }

    @Test func aLeaseFileThatCannotBeUsedIsTold() async throws {
        let server = RotatingServer()
        let manager = scene.manager(server) { $0.lease = .file("/dev/null/lease") }
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        await #expect { try await manager.validAccessToken() } throws: { error in
            if case TokenError.storage(let reason) = error { reason.code == .unavailable } else { false }
        }
        #expect(server.requests == 0)
    }
}
