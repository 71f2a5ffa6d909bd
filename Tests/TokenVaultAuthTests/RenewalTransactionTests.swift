import HookedStorage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultAuth

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// One renewal for a program that runs for one token.
@Suite struct RenewalTransactionTests {
    private let vault = InMemoryVault()
    private let clock = StandingClock()
    private var storage: InMemoryTokenStorage { InMemoryTokenStorage(vault: vault, service: "test") }

    private func place(_ storage: (any TokenStorage)? = nil) -> ProfileStore {
        ProfileStore(storage ?? self.storage, blocking: self.storage.blocking, lease: .storedIntent)
    }

    /// Signs in with a token that is good for `seconds`.
    private func begin(goodFor seconds: Double) async throws -> StoredToken {
        let provider = ScriptedProvider(authorizing: { () throws(ScriptedProvider.Failure) in
            TokenInfo(
                accessToken: "access-old", refreshToken: "refresh-old",
                accessTokenExpiry: Date().addingTimeInterval(seconds))
        })
        var signIn = SignInTransaction(provider, place(), "work")
        signIn.clock = clock.clock
        _ = await signIn.run(ScriptedProvider.settings, within: .seconds(60))
        return try StoredToken.look(
            for: "work", in: storage.blocking, configuration: TokenManager.Configuration())
    }

    private func renewal(
        _ provider: ScriptedProvider, _ storage: (any TokenStorage)? = nil,
        _ profile: Profile = ScriptedProvider.profile()
    ) -> RenewalTransaction<ScriptedProvider> {
        var renewal = RenewalTransaction(
            provider, place(storage), "work", profile, TokenManager.Configuration())
        renewal.clock = clock.clock
        return renewal
    }

    private var stored: String? {
        get throws { try place().session("work")?.tokens?.accessToken }
    }

    private func failing(_ kind: RefreshFailure.Kind) -> ScriptedProvider {
        ScriptedProvider(refreshing: { (_) throws(ScriptedProvider.Failure) in
            throw ScriptedProvider.Failure(kind)
        })
    }

    @Test func aTokenThatIsDueIsRenewed() async throws {
        let known = try await begin(goodFor: -1)
        let provider = ScriptedProvider()
        let outcome = await renewal(provider).run(replacing: known, isForced: false)
        #expect(try outcome.tokens.get().accessToken == "access-new")
        #expect(outcome.hasAsked && !outcome.hasUnstored && !outcome.mayHaveLost)
        #expect(try stored == "access-new" && provider.refreshed.all == ["refresh-old"])
    }

    /// Another program was faster.
    @Test func aTokenThatWasRenewedMeanwhileIsTaken() async throws {
        let known = try await begin(goodFor: -1)
        _ = await renewal(ScriptedProvider()).run(replacing: known, isForced: false)
        let provider = ScriptedProvider()
        let outcome = await renewal(provider).run(replacing: known, isForced: false)
        #expect(try outcome.tokens.get().accessToken == "access-new")
        #expect(provider.refreshed.all.isEmpty && !outcome.hasAsked)
    }

    @Test(arguments: [false, true])
    func aTokenThatIsStillGoodIsKeptUnlessForced(_ isForced: Bool) async throws {
        let known = try await begin(goodFor: 3_600)
        // The token is due, but valid for half a minute more.
        let late = try #require(known.tokens.accessTokenExpiry).addingTimeInterval(-30)
        let provider = failing(.notSent)
        var renewal = renewal(provider)
        renewal.configuration.clock = { late }
        let outcome = await renewal.run(replacing: known, isForced: isForced)
        #expect(outcome.hasAsked && !provider.refreshed.all.isEmpty)
        if isForced {
            #expect(throws: TokenError.self) { try outcome.tokens.get() }
        } else {
            #expect(try outcome.tokens.get().accessToken == "access-old")
        }
    }

    @Test func aLostAnswerIsTold() async throws {
        let known = try await begin(goodFor: -1)
        let provider = failing(.timedOut)
        let outcome = await renewal(provider).run(replacing: known, isForced: false)
        #expect(outcome.mayHaveLost && outcome.failure?.refreshFailure.kind == .timedOut)
        #expect(provider.refreshed.all.count == 1)
        let next = ScriptedProvider(refreshing: { (request) throws(ScriptedProvider.Failure) in
            guard request.isRetryOfUnknownOutcome else {
                throw ScriptedProvider.Failure(.refused("not_a_retry"))
            }
            throw ScriptedProvider.Failure(.invalidGrant)
        })
        var later = renewal(next)
        later.configuration.clock = { Date().addingTimeInterval(3_600) }
        let end = await later.run(replacing: known, isForced: false)
        #expect(throws: TokenError.sessionExpired) { try end.tokens.get() }
        #expect(end.mayHaveLost)
        #expect(try stored == nil)
    }

    /// The stored source decides, so that tokens go only to the provider that issued them.
    @Test func aSessionOfAnotherProviderIsNotSent() async throws {
        let known = try await begin(goodFor: -1)
        let provider = ScriptedProvider()
        let other = ScriptedProvider.profile(
            SignInSettings(issuer: "https://other.example.com", clientID: "fake"))
        let outcome = await renewal(provider, nil, other).run(replacing: known, isForced: false)
        #expect(outcome.isOfOtherSource && provider.refreshed.all.isEmpty)
    }

    @Test func newTokensAreStoredOnceTheVaultIsUnlocked() async throws {
        let known = try await begin(goodFor: -1)
        let vault = vault
        let provider = ScriptedProvider(refreshing: { (_) throws(ScriptedProvider.Failure) in
            vault.setLockState(.locked)
            return TokenRefreshResponse(
                accessToken: "access-new", expiresIn: 3_600, refreshToken: "refresh-new")
        })
        let told = Notes<TokenError>()
        var renewal = renewal(provider)
        renewal.waiting = { error in
            told.add(error)
            vault.setLockState(.unlocked)
        }
        let outcome = await renewal.run(replacing: known, isForced: false)
        #expect(try outcome.tokens.get().accessToken == "access-new")
        #expect(try stored == "access-new")
        #expect(told.all.count == 1 && provider.refreshed.all.count == 1)
    }

    /// The deadline of the caller ends a storage that hangs, and the outcome reports the lost tokens.
    @Test func aStorageThatHangsIsGivenUp() async throws {
        let known = try await begin(goodFor: -1)
        let gate = TaskGate()
        let hasAnswered = Notes<Int>()
        let hooked = HookedStorage(base: storage) { call, moment, _ throws(TokenStorageError) in
            if call == .commit, moment == .before, !hasAnswered.all.isEmpty { await gate.pass() }
        }
        let provider = ScriptedProvider(refreshing: { (_) throws(ScriptedProvider.Failure) in
            hasAnswered.add(1)
            return TokenRefreshResponse(
                accessToken: "access-new", expiresIn: 3_600, refreshToken: "refresh-new")
        })
        var renewal = renewal(provider, hooked)
        renewal.deadline = Deadline(after: .seconds(3_600))
        let task = Task { [renewal] in await renewal.run(replacing: known, isForced: false) }
        await gate.arrival()
        let outcome = await clock.moving { await task.value }
        guard case .failure(.notSaved(let reason)) = outcome.tokens else {
            Issue.record("\(outcome.tokens)")
            return
        }
        #expect([.timedOut, .outcomeUnknown].contains(reason.code) && outcome.hasUnstored)
        await gate.open()
    }

    @Test func tokensOfASessionThatEndedAreRevoked() async throws {
        let known = try await begin(goodFor: -1)
        let storage = storage
        let provider = ScriptedProvider(refreshing: { (_) throws(ScriptedProvider.Failure) in
            _ = try? await storage.commit(SessionStore.ending("work", expecting: .any))
            return TokenRefreshResponse(
                accessToken: "access-new", expiresIn: 3_600, refreshToken: "refresh-new")
        })
        let outcome = await renewal(provider).run(replacing: known, isForced: false)
        #expect(throws: TokenError.sessionChanged) { try outcome.tokens.get() }
        guard case .revoked? = outcome.revocation else {
            Issue.record("\(outcome)")
            return
        }
        #expect(provider.revoked.all == ["refresh-new"])
    }

    /// A cancellation at each call of the storage: the tokens are stored, or the outcome tells of them.
    @Test(arguments: 0..<12)
    func aCancellationLosesNoTokensSilently(_ step: Int) async throws {
        let known = try await begin(goodFor: -1)
        let calls = Notes<Int>()
        let task = Notes<Task<RenewalTransaction<ScriptedProvider>.Outcome, Never>>()
        let begun = TaskGate()
        let hooked = HookedStorage(base: storage) { _, _, _ throws(TokenStorageError) in
            await begun.pass()
            calls.add(calls.all.count)
            if calls.all.count == step + 1 { for task in task.all { task.cancel() } }
        }
        let provider = ScriptedProvider()
        let renewal = renewal(provider, hooked)
        task.add(Task { await renewal.run(replacing: known, isForced: false) })
        await begun.open()
        let outcome = await task.all[0].value
        switch outcome.tokens {
        case .success(let tokens): #expect(try tokens.accessToken == "access-new" && stored == "access-new")
        case .failure:
            #expect(outcome.hasUnstored == !provider.refreshed.all.isEmpty)
            #expect(try stored == "access-old")
        }
    }

    /// A cancellation while the provider is asked ends the request, and the next process knows of it.
    @Test func aCancelledRequestIsRecorded() async throws {
        let known = try await begin(goodFor: -1)
        let asked = TaskGate()
        let provider = ScriptedProvider(refreshing: { (_) throws(ScriptedProvider.Failure) in
            await asked.open()
            await asked.pass()
            // The stream ends with the cancellation.
            for await _ in AsyncStream(Void.self, { _ in }) {}
            throw ScriptedProvider.Failure(.interrupted)
        })
        let renewal = renewal(provider)
        let task = Task { await renewal.run(replacing: known, isForced: false) }
        await asked.arrival()
        task.cancel()
        let outcome = await task.value
        #expect(outcome.mayHaveLost && outcome.failure == ScriptedProvider.Failure(.interrupted))
        let session = try #require(try place().session("work"))
        #expect(session.mayBeOutdated && !session.mayBeRenewing)
    }
}
