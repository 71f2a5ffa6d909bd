import HookedStorage
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultAuth

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// Refreshes that several processes begin at once, each with a handle of its own.
@Suite struct LeaseTests {
    private let scene = TestFixture()

    /// The server does not answer until all others were kept from asking.
    @Test func managersOfOneVaultRefreshOnce() async throws {
        let vault = try SharedVault()
        let (begun, gate) = (Gate(), Gate())
        let server = RotatingServer(begun: begun, answeringAt: gate)
        let first = scene.manager(server, storage: try vault.storage())
        let others = try (0..<7).map { _ in
            scene.manager(server, storage: try vault.storage()) { $0.leaseTimeout = .milliseconds(20) }
        }
        try await first.updateTokens(scene.tokens(goodFor: -1))
        let call = Task { try await first.validAccessToken() }
        await begun.pass()
        await withTaskGroup { group in
            for other in others {
                group.addTask {
                    await #expect(throws: TokenError.timedOut) { try await other.validAccessToken() }
                }
            }
        }
        #expect(server.requests == 1)
        gate.open()
        #expect(try await call.value == "access-1")
        for other in others { #expect(try await other.validAccessToken() == "access-1") }
        #expect(server.requests == 1)
    }

    /// The server does not answer until all others have looked again and again at what is stored.
    @Test func managersOfAStorageWithoutAFileRefreshOnce() async throws {
        let (begun, gate) = (Gate(), Gate())
        let server = RotatingServer(begun: begun, answeringAt: gate)
        let first = scene.manager(server)
        let reads = (0..<7).map { _ in Notes<Int>() }
        let others = reads.map { reads in
            let storage = HookedStorage(base: scene.storage) { call, moment, _ in
                if call == .item, moment == .after { reads.add(1) }
            }
            return scene.manager(server, storage: storage)
        }
        try await first.updateTokens(scene.tokens(goodFor: -1))
        let call = Task { try await first.validAccessToken() }
        await begun.pass()
        let calls = others.map { other in Task { try await other.validAccessToken() } }
        // The first read is the manager's own, before it waits.
        while server.requests == 1, reads.contains(where: { $0.all.count < 4 }) { await Task.yield() }
        #expect(server.requests == 1)
        gate.open()
        #expect(try await call.value == "access-1")
        for call in calls { #expect(try await call.value == "access-1") }
        #expect(server.requests == 1)
    }

    /// The provider ends the session while other managers wait for the same renewal. Every manager then
    /// reports that the user is signed out.
    @Test func whoWaitsWhileTheProviderEndsTheSessionIsSignedOut() async throws {
        let vault = try SharedVault()
        let (begun, gate) = (Gate(), Gate())
        let server = RotatingServer(answers: [.failure(RefreshFailure(.invalidGrant))]) { _ in
            begun.open()
            await gate.pass()
        }
        let first = scene.manager(server, storage: try vault.storage())
        try await first.updateTokens(scene.tokens(goodFor: -1))
        let others = try (0..<7).map { _ in scene.manager(server, storage: try vault.storage()) }
        let call = Task { try await first.validAccessToken() }
        await begun.pass()
        let calls = others.map { other in Task { try await other.validAccessToken() } }
        for other in others { try await settled(other) }
        gate.open()
        await #expect(throws: TokenError.sessionExpired) { try await call.value }
        for call in calls { await #expect(throws: TokenError.tokenNotFound) { try await call.value } }
        for other in others { #expect(await other.authState() == .signedOut) }
        #expect(server.requests == 1)
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

    /// A manager that waited for a request without an answer gets the error too, as all callers of one
    /// process do. One of the managers sends an interrupted request once more.
    @Test(arguments: [(RefreshFailure.Kind.timedOut, 1), (.interrupted, 2)])
    func whoWaitedForALostAnswerDoesNotSendTheTokenAgain(
        _ kind: RefreshFailure.Kind, _ requests: Int
    ) async throws {
        let vault = try SharedVault()
        let (begun, gate, clock) = (Gate(), Gate(), scene.clock)
        let lost = RotatingServer.Answer.failure(RefreshFailure(kind))
        let server = RotatingServer(answers: Array(repeating: lost, count: requests)) { number in
            if number == 1 {
                begun.open()
                await gate.pass()
            }
            clock.advance(by: 1)
        }
        let managers = try (0..<5).map { _ in scene.manager(server, storage: try vault.storage()) }
        try await managers[0].updateTokens(scene.tokens(goodFor: -1))
        let first = Task { try await managers[0].validAccessToken() }
        await begun.pass()
        let others = managers.dropFirst().map { other in Task { try await other.validAccessToken() } }
        for other in managers.dropFirst() { try await settled(other) }
        gate.open()
        for call in [first] + others { await #expect(throws: TokenError.self) { try await call.value } }
        #expect(server.requests == requests)
        // A later call tries the refresh again.
        clock.advance(by: 60)
        #expect(try await managers[1].validAccessToken() == "access-1")
        #expect(server.requests == requests + 1 && server.retriesOfUnknownOutcome == requests)
    }

    @Test func accountsDoNotWaitForOneAnother() async throws {
        let vault = try SharedVault()
        let gate = Gate()
        let begun = Gate()
        let work = scene.manager(
            RotatingServer(begun: begun, answeringAt: gate), storage: try vault.storage())
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
        let hasRoom = Gate()
        let manager = scene.manager(
            server, storage: HookedFile(base: storage, server: server, hasRoom: hasRoom))
        let other = scene.manager(server, storage: try vault.storage()) { $0.leaseTimeout = .milliseconds(1) }
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        await #expect { try await manager.validAccessToken() } throws: { error in
            if case TokenError.notSaved(let reason) = error { reason.code == .noSpace } else { false }
        }
        await #expect(throws: TokenError.timedOut) { try await other.validAccessToken() }
        #expect(server.requests == 1)
        hasRoom.open()
        #expect(try await manager.validAccessToken() == "access-1")
        #expect(try await other.validAccessToken() == "access-1")
        #expect(server.requests == 1)
    }

    @Test func anIntentOfSomebodyWhoIsGoneIsTriedOnce() async throws {
        let vault = try SharedVault()
        let server = RotatingServer(isForgiving: true)
        // The first process ended as the answer arrived: no later step ran, and its lease is free.
        let storage = try vault.storage()
        let manager = scene.manager(server, storage: storage)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        // The intent names the vault's own lock, so the process that gets the lock knows that the owner is
        // gone.
        let lock = try lockName(of: vault)
        try await plant(
            #"{"begun":\#(scene.seconds),"isOver":false,"lock":"\#(lock)","name":"gone","seconds":600}"#,
            in: storage)
        let next = scene.manager(server, storage: try vault.storage())
        #expect(try await next.validAccessToken() == "access-1")
        #expect(server.requests == 1)
        #expect(server.retriesOfUnknownOutcome == 1)
        try await manager.updateTokens(scene.tokens())
        // Under another lock, the intent's owner may still be running.
        let waiting = RotatingServer()
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        try await plant(
            #"{"begun":\#(scene.seconds),"isOver":false,"lock":"1:1","name":"there","seconds":600}"#,
            in: storage)
        let patient = scene.manager(waiting, storage: try vault.storage())
        let call = Task { try await patient.validAccessToken() }
        try await settled(patient)
        #expect(waiting.requests == 0)
        try await manager.updateTokens(TokenInfo(accessToken: "elsewhere"))
        await #expect(throws: TokenError.sessionChanged) { try await call.value }
        #expect(waiting.requests == 0)
    }

    /// Stores an intent as a process leaves it behind that is killed.
    private func plant(_ intent: String, in storage: any TokenStorage) async throws {
        let text = try #require(try await storage.retrieve(for: "auth/session/work"))
        let left = text.replacing("{\"obtained\"", with: "{\"intent\":\(intent),\"obtained\"")
        #expect(left != text)
        try await storage.store(token: left, for: "auth/session/work")
    }

    /// What an intent under the vault's lease is marked with.
    private func lockName(of vault: SharedVault) throws -> String {
        let lock = try #require(try ByteLock.take(FilePath("\(vault.path).lease"), byteAt: 1))
        return "\(lock.identity.device):\(lock.identity.inode)"
    }

    /// Comes back when a refresh of `manager` is under way.
    private func settled(_ manager: TokenManager) async throws {
        while manager.coordinator.operationsSoFar == 0 { await Task.yield() }
    }

    @Test(arguments: [#""isOver":true,"seconds":600"#, #""isOver":false,"seconds":0.05"#])
    func withoutALockAnIntentIsWaitedForAsLongAsItsOwnerWould(_ what: String) async throws {
        let server = RotatingServer(isForgiving: true)
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        try await plant(#"{"begun":\#(scene.seconds),"name":"gone",\#(what)}"#, in: scene.storage)
        #expect(try await scene.manager(server).validAccessToken() == "access-1")
        #expect(server.retriesOfUnknownOutcome == 1)
    }

    @Test(arguments: [0.0, 1_000_000, -1_000_000])
    func clocksOfTwoMachinesAreNotCompared(_ difference: Double) async throws {
        let server = RotatingServer()
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        let isAncient = difference < 0
        try await plant(
            #"{"begun":\#(scene.seconds + difference),"isOver":false,"name":"there","seconds":600}"#,
            in: scene.storage)
        let call = Task { try await manager.validAccessToken() }
        if isAncient {
            #expect(try await call.value == "access-1")
        } else {
            try await settled(manager)
            #expect(server.requests == 0)
            try await manager.clearTokens()
            await #expect(throws: TokenError.tokenNotFound) { try await call.value }
            #expect(server.requests == 0)
        }
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
