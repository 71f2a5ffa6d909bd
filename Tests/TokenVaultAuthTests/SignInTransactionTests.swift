import HookedStorage
import Testing
import TokenVault

@testable import TokenVaultAuth

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// One sign-in and one sign-out, from the request to the outcome.
@Suite struct SignInTransactionTests {
    private let vault = InMemoryVault()
    private let clock = StandingClock()
    private var storage: InMemoryTokenStorage { InMemoryTokenStorage(vault: vault, service: "test") }

    private func place(_ storage: (any TokenStorage)? = nil) -> ProfileStore {
        ProfileStore(storage ?? self.storage, blocking: self.storage.blocking, lease: .storedIntent)
    }

    private func signIn(
        _ provider: ScriptedProvider, _ storage: (any TokenStorage)? = nil
    ) -> SignInTransaction<ScriptedProvider> {
        var signIn = SignInTransaction(provider, place(storage), "work")
        signIn.clock = clock.clock
        return signIn
    }

    private func signOut(
        _ provider: ScriptedProvider, _ storage: (any TokenStorage)? = nil
    ) -> SignOutTransaction<ScriptedProvider> {
        var signOut = SignOutTransaction(provider, place(storage), "work")
        signOut.clock = clock.clock
        return signOut
    }

    private func giving(_ name: String, idToken: String? = nil) -> ScriptedProvider {
        ScriptedProvider(authorizing: { () throws(ScriptedProvider.Failure) in
            TokenInfo(accessToken: "access-\(name)", refreshToken: "refresh-\(name)", idToken: idToken)
        })
    }

    /// Signs in with tokens of that name.
    private func begin(_ name: String, idToken: String? = nil) async throws {
        let outcome = await signIn(giving(name, idToken: idToken))
            .run(ScriptedProvider.settings, within: .seconds(60))
        guard case .signedIn = outcome else { throw CancellationError() }
    }

    private var stored: String? {
        get throws { try place().session("work")?.tokens?.accessToken }
    }

    @Test func aSignInIsStored() async throws {
        let provider = ScriptedProvider()
        let states = Notes<TransactionState>()
        var signIn = signIn(provider)
        signIn.entered = { states.add($0) }
        let outcome = await signIn.run(ScriptedProvider.settings, within: .seconds(60))
        guard case .signedIn(let signedIn, .none, false) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(signedIn.user?.identifier == "fake-user")
        #expect(try stored == "access-new")
        #expect(try place().profile("work")?.content == ScriptedProvider.profile())
        #expect(states.all == [.settled] && provider.revoked.all.isEmpty)
    }

    @Test func aRefusedSignInStoresNothing() async throws {
        let provider = ScriptedProvider(authorizing: { () throws(ScriptedProvider.Failure) in
            throw ScriptedProvider.Failure(.refused("access_denied"))
        })
        let outcome = await signIn(provider).run(ScriptedProvider.settings, within: .seconds(60))
        guard case .notAuthorized(let failure) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(failure == ScriptedProvider.Failure(.refused("access_denied")))
        #expect(try stored == nil && place().profile("work") == nil)
    }

    @Test func tokensThatCannotBeStoredAreRevoked() async throws {
        try await begin("old")
        let full = HookedStorage(base: storage) { call, moment, _ throws(TokenStorageError) in
            guard call == .commit, moment == .before else { return }
            throw TokenStorageError(.noSpace, operation: "store", backend: "file")
        }
        let provider = giving("new")
        let outcome = await signIn(provider, full).run(ScriptedProvider.settings, within: .seconds(60))
        guard case .notStored(.storage(let reason), .revoked, .done) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(reason.code == .noSpace && provider.revoked.all == ["refresh-new"])
        #expect(try stored == "access-old")
    }

    /// A commit that happened without a confirmation is looked for.
    @Test func aCommitOfUnknownOutcomeIsLookedFor() async throws {
        let silent = HookedStorage(base: storage) { call, moment, _ throws(TokenStorageError) in
            guard call == .commit, moment == .after else { return }
            throw TokenStorageError(.outcomeUnknown, operation: "store", backend: "agent")
        }
        let provider = giving("new")
        let outcome = await signIn(provider, silent).run(ScriptedProvider.settings, within: .seconds(60))
        guard case .signedIn = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(try stored == "access-new" && provider.revoked.all.isEmpty)
    }

    @Test func aLockedVaultIsWaitedFor() async throws {
        vault.setLockState(.locked)
        let provider = giving("new")
        let told = Notes<TokenError>()
        var signIn = signIn(provider)
        signIn.waiting = { [vault] error in
            told.add(error)
            vault.setLockState(.unlocked)
        }
        let outcome = await signIn.run(ScriptedProvider.settings, within: .seconds(60))
        guard case .signedIn = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(told.all.count == 1 && provider.revoked.all.isEmpty)
        #expect(try stored == "access-new")
    }

    /// The new session would end with the revocation of one that shares a token or a session at the provider
    /// with it.
    @Test(arguments: ["other", "access", "refresh", "session"])
    func theSessionBeforeIsRevokedUnlessTheNewOneEndsWithIt(_ shared: String) async throws {
        let provider: ScriptedProvider
        // {"sid":"s1"}, without a valid signature.
        let idToken = "eyJhbGciOiJub25lIn0.eyJzaWQiOiJzMSJ9.fake"
        try await begin("old", idToken: idToken)
        switch shared {
        case "access":
            provider = ScriptedProvider(authorizing: { () throws(ScriptedProvider.Failure) in
                TokenInfo(accessToken: "access-old", refreshToken: "refresh-new")
            })
        case "refresh":
            provider = ScriptedProvider(authorizing: { () throws(ScriptedProvider.Failure) in
                TokenInfo(accessToken: "access-new", refreshToken: "refresh-old")
            })
        case "session": provider = giving("new", idToken: idToken)
        default: provider = giving("new")
        }
        let outcome = await signIn(provider).run(ScriptedProvider.settings, within: .seconds(60))
        if shared == "other" {
            guard case .signedIn(_, .ended(.revoked, .none), _) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(provider.revoked.all == ["refresh-old"])
        } else {
            guard case .signedIn(_, .kept, _) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(provider.revoked.all.isEmpty)
        }
    }

    @Test func aSessionThatIsToBeKeptIsNotRevoked() async throws {
        try await begin("old")
        let provider = giving("new")
        var settings = ScriptedProvider.settings
        settings.keepsPrevious = true
        let outcome = await signIn(provider).run(settings, within: .seconds(60))
        guard case .signedIn(_, .kept, _) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(provider.revoked.all.isEmpty)
    }

    /// Another user is noted only where both are known.
    @Test(arguments: [("another-user", true), ("fake-user", false), (nil, false)] as [(String?, Bool)])
    func anotherUserIsNoted(_ user: String?, _ isOther: Bool) async throws {
        try await begin("old")
        var provider = giving("new")
        provider.user = user.map { AuthUser(identifier: $0) }
        let outcome = await signIn(provider).run(ScriptedProvider.settings, within: .seconds(60))
        guard case .signedIn(_, _, isOther) = outcome else {
            Issue.record("\(outcome)")
            return
        }
    }

    /// Tokens go to no other provider, not even to be revoked.
    @Test func theSessionOfAnotherProviderIsLeftAlone() async throws {
        try await begin("old")
        let provider = giving("new")
        let other = SignInSettings(issuer: "https://other.example.com", clientID: "fake")
        let outcome = await signIn(provider).run(other, within: .seconds(60))
        guard case .signedIn(_, .foreign, false) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(provider.revoked.all.isEmpty)
    }

    /// A cancellation at each call of the storage. The new session is stored and good, or its tokens are
    /// revoked and the previous session is there.
    @Test(arguments: 0..<8)
    func aCancellationLosesNoSession(_ step: Int) async throws {
        try await begin("old")
        let calls = Notes<Int>()
        let task = Notes<Task<SignInTransaction<ScriptedProvider>.Outcome, Never>>()
        let begun = TaskGate()
        let hooked = HookedStorage(base: storage) { _, _, _ throws(TokenStorageError) in
            await begun.pass()
            calls.add(calls.all.count)
            if calls.all.count == step + 1 { for task in task.all { task.cancel() } }
        }
        let provider = giving("new")
        let signIn = signIn(provider, hooked)
        task.add(Task { await signIn.run(ScriptedProvider.settings, within: .seconds(60)) })
        await begun.open()
        let outcome = await task.all[0].value
        switch outcome {
        case .signedIn:
            #expect(try stored == "access-new" && provider.revoked.all == ["refresh-old"])
        case .cancelled(.revoked, .done):
            #expect(try stored == "access-old" && provider.revoked.all == ["refresh-new"])
        default: Issue.record("\(outcome)")
        }
    }

    /// The storage answers when what was given is being revoked already.
    @Test func whatIsStoredTooLateIsUndone() async throws {
        try await begin("old")
        let (gate, revoking) = (TaskGate(), TaskGate())
        let hooked = HookedStorage(base: storage) { call, moment, _ throws(TokenStorageError) in
            if call == .commit, moment == .before { await gate.pass() }
        }
        var provider = giving("new")
        provider.revoking = { () throws(ScriptedProvider.Failure) in
            await revoking.pass()
            await gate.open()
        }
        let signIn = signIn(provider, hooked)
        let task = Task { await signIn.run(ScriptedProvider.settings, within: .seconds(60)) }
        await gate.arrival()
        task.cancel()
        await clock.moving { await revoking.arrival() }
        await revoking.open()
        let outcome = await task.value
        guard case .cancelled(.revoked, .done) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(try stored == "access-old" && provider.revoked.all == ["refresh-new"])
    }

    @Test func aSignOutDeletesAndThenRevokes() async throws {
        try await begin("old")
        var provider = ScriptedProvider()
        let storage = storage
        provider.revoking = { () throws(ScriptedProvider.Failure) in
            let isThere = (try? storage.blocking.contains(for: SessionStore.key(of: "work"))) ?? true
            if isThere { throw ScriptedProvider.Failure(.refused("too_early")) }
        }
        let states = Notes<TransactionState>()
        var signOut = signOut(provider)
        signOut.entered = { states.add($0) }
        let outcome = await signOut.run()
        guard case .ended(.revoked, .none) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(provider.revoked.all == ["refresh-old"])
        #expect(states.all == [.ending, .endedUnrevoked, .settled])
        #expect(try stored == nil && place().profile("work") != nil)
        let again = await signOut.run()
        guard case .notSignedIn(hadProfile: true) = again else {
            Issue.record("\(again)")
            return
        }
        signOut.forgetsProfile = true
        _ = await signOut.run()
        #expect(try place().profile("work") == nil)
    }

    /// A session that cannot be deleted is not revoked: it is to go on.
    @Test func aSessionThatStaysIsNotRevoked() async throws {
        try await begin("old")
        vault.setLockState(.locked)
        let provider = ScriptedProvider()
        let outcome = await signOut(provider).run()
        guard case .notEnded(.storage(let reason)) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(reason.code == .locked && provider.revoked.all.isEmpty)
    }

    @Test func aCancelledSignOutStillTellsTheProvider() async throws {
        try await begin("old")
        let provider = ScriptedProvider()
        let gate = TaskGate()
        let hooked = HookedStorage(base: storage) { call, moment, _ throws(TokenStorageError) in
            if call == .commit, moment == .before { await gate.pass() }
        }
        let signOut = signOut(provider, hooked)
        let task = Task { await signOut.run() }
        await gate.arrival()
        task.cancel()
        await gate.open()
        let outcome = await task.value
        guard case .ended(.revoked, .none) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(provider.revoked.all == ["refresh-old"])
    }

    /// A storage that does not answer does not keep a cancelled sign-out.
    @Test func aSignOutDoesNotWaitForAStorageThatHangs() async throws {
        try await begin("old")
        let provider = ScriptedProvider()
        let gate = TaskGate()
        let hooked = HookedStorage(base: storage) { call, moment, _ throws(TokenStorageError) in
            if call == .commit, moment == .before { await gate.pass() }
        }
        let signOut = signOut(provider, hooked)
        let task = Task { await signOut.run() }
        await gate.arrival()
        task.cancel()
        let outcome = await clock.moving { await task.value }
        guard case .cancelled = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(provider.revoked.all.isEmpty)
        await gate.open()
    }
}
