import Testing
import TokenVault

@testable import TokenVaultAuth

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// What comes after a refresh that failed for now.
@Suite struct FailureTests {
    private let scene = TestFixture()

    @Test func anotherAttemptFollowsAfterAPause() async throws {
        let server = RotatingServer(answers: [
            .failure(RefreshFailure(.notSent)), .failure(RefreshFailure(.serverError(502))),
        ])
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        #expect(try await manager.validAccessToken() == "access-1")
        #expect(server.requests == 3)
        let pauses = scene.pauses.all
        #expect(pauses.count == 2)
        #expect((Duration.milliseconds(500)...Duration.seconds(1)).contains(pauses[0]))
        #expect((Duration.seconds(1)...Duration.seconds(2)).contains(pauses[1]))
    }

    @Test func theServerIsNotAskedBeforeThePauseIsOver() async throws {
        let failure = RefreshFailure(.throttled, retryAfter: scene.clock.now.addingTimeInterval(120))
        let server = RotatingServer(answers: [.failure(failure)])
        let manager = scene.manager(server)
        let other = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        for manager in [manager, manager, other] {
            await #expect { try await manager.validAccessToken() } throws: { error in
                guard case TokenError.refreshFailed(_, let time?) = error else { return false }
                return time >= failure.retryAfter!
            }
        }
        #expect(server.requests == 1)
        #expect(scene.pauses.all.isEmpty)
        scene.clock.advance(by: 122)
        #expect(try await other.validAccessToken() == "access-1")
        #expect(server.requests == 2)
    }

    /// Nor after one of a clock that was ahead.
    @Test func aPauseThatBeginsInTheFutureIsNone() async throws {
        let failure = RefreshFailure(.throttled, retryAfter: scene.clock.now.addingTimeInterval(3_600))
        let server = RotatingServer(answers: [.failure(failure)])
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        scene.clock.advance(by: 1_800)
        await #expect(throws: TokenError.self) { try await manager.validAccessToken() }
        scene.clock.advance(by: -1_800)
        #expect(try await manager.validAccessToken() == "access-1")
    }

    @Test func pausesGrowAndEnd() {
        let backOff = RefreshBackOff(jitter: { 1 })
        let now = scene.clock.now
        func seconds(_ failures: Int, _ failure: RefreshFailure = RefreshFailure(.notSent)) -> Double {
            (backOff.pause(after: failure, failures: failures, now: now).until - now.timeIntervalSince1970)
                .rounded()
        }
        #expect([1, 2, 3, 4].map { seconds($0) } == [1, 2, 4, 8])
        #expect(seconds(9) == 256)
        #expect(seconds(10) == 300)
        #expect(seconds(1_000_000) == 300)
        // No server can block a client permanently.
        let forEver = RefreshFailure(.throttled, retryAfter: now.addingTimeInterval(1e12))
        #expect(seconds(1, forEver) <= 3_601)
        // A past time does not shorten the pause after several failures.
        let past = RefreshFailure(.throttled, retryAfter: now.addingTimeInterval(-1e12))
        #expect([1, 4].map { seconds($0, past) } == [1, 8])
    }

    @Test func twoProcessesDoNotComeBackAtTheSameTime() {
        let now = scene.clock.now
        let times = (0..<100).map { _ in
            RefreshBackOff().pause(after: RefreshFailure(.notSent), failures: 5, now: now).until
        }
        #expect(Set(times).count > 90)
    }

    @Test func aTokenThatIsStillGoodOutlivesAServerThatIsNot() async throws {
        let failure = RefreshFailure(.throttled, retryAfter: scene.clock.now.addingTimeInterval(3_000))
        let server = RotatingServer(answers: [.failure(failure)])
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: 600))
        scene.clock.advance(by: 550)
        #expect(try await manager.validAccessToken() == "access-0")
        #expect(server.requests == 1)
        scene.clock.advance(by: 50)
        await #expect(throws: TokenError.self) { try await manager.validAccessToken() }
        #expect(server.requests == 1)
    }

    @Test func aLostAnswerIsAskedForAgainWithTheSameToken() async throws {
        let server = RotatingServer(isForgiving: true, answers: [.lost])
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        #expect(try await manager.validAccessToken() == "access-2")
        #expect(server.requests == 2)
        #expect(server.retriesOfUnknownOutcome == 1)
        #expect(!server.isOver)
    }

    @Test func aLostAnswerOfAStrictServerIsTheEndAndSaidSo() async throws {
        let server = RotatingServer(answers: [.lost])
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        await #expect(throws: TokenError.sessionExpired) { try await manager.validAccessToken() }
        #expect(server.requests == 2)
        #expect(await manager.authState() == .signedOut)
    }

    /// The server may still be processing the request: a second request would be a second use of the token.
    @Test(arguments: [RefreshFailure.Kind.timedOut, .serverError(504)])
    func aRequestWithoutAnAnswerInTimeIsNotSentAgainByTheSameCall(_ kind: RefreshFailure.Kind) async throws {
        let lost = RefreshFailure(kind)
        let server = RotatingServer(answers: [.failure(lost), .failure(lost)])
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        for calls in 1...2 {
            await #expect { try await manager.validAccessToken() } throws: { error in
                guard case TokenError.refreshFailed(let failure, _) = error else { return false }
                return failure.kind == kind && failure.leavesOutcomeUnknown
            }
            #expect(server.requests == calls)
            scene.clock.advance(by: 10)
        }
        #expect(try await manager.validAccessToken() == "access-1")
        #expect(server.requests == 3 && server.retriesOfUnknownOutcome == 2)
    }

    /// Nor one that was cancelled when its time was over, whatever it broke off with.
    @Test func aRequestThatWasGivenUpIsNotSentAgainByTheSameCall() async throws {
        let server = RotatingServer(answers: [.failure(RefreshFailure(.interrupted))]) { number in
            guard number == 1 else { return }
            await Gate.untilCancelled()
        }
        let manager = scene.manager(server) { $0.refreshTimeout = .milliseconds(1) }
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        await #expect { try await manager.validAccessToken() } throws: { error in
            guard case TokenError.refreshFailed(let failure, _) = error else { return false }
            return failure.kind == .timedOut
        }
        #expect(server.requests == 1)
    }

    @Test(arguments: [RefreshFailure.Kind.interrupted, .serverError(502)])
    func answersThatAreLostAreAskedForAgainOnce(_ kind: RefreshFailure.Kind) async throws {
        let lost = RefreshFailure(kind)
        let server = RotatingServer(answers: [.failure(lost), .failure(lost)])
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        await #expect(throws: TokenError.self) { try await manager.validAccessToken() }
        #expect(server.requests == 2)
    }

    /// An answer that came while the process was stopped is still to be read when it goes on.
    @Test(arguments: [(Duration.seconds(30), 1), (.seconds(30.5), 1), (.seconds(60), 2)])
    func whoWasStoppedLooksOnceMore(_ passed: Duration, _ sleeps: Int) async throws {
        let begun = ContinuousClock.now
        var times = [begun, begun + passed]
        var slept: [Duration] = []
        try await Timeout.end(
            after: .seconds(30), now: { times.removeFirst() }, sleep: { slept.append($0) })
        #expect(slept.count == sleeps && slept.first == .seconds(30))
    }

    /// A caller that was stopped also keeps waiting for a refresh that goes on at the same time as its own
    /// clock.
    @Test func whoWasStoppedGoesOnWaitingForTheRefresh() async throws {
        let slept = Notes<Duration>()
        let isAway = Gate()
        let goesOn = Gate()
        let begun = ContinuousClock.now
        let coordinator = TokenRefreshCoordinator<Int>(
            limit: .seconds(30), now: { slept.all.isEmpty ? begun : begun + .seconds(3_600) },
            sleep: { duration in
                slept.add(duration)
                // The whole time passes at once, and the second sleep never ends.
                if slept.all.count > 1 {
                    isAway.open()
                    await goesOn.pass()
                    try Task.checkCancellation()
                }
            })
        let value = try await coordinator.value { () async throws(TokenError) in
            await isAway.pass()
            return 1
        }
        #expect(value == 1 && slept.all == [.seconds(30), .seconds(40)])
        goesOn.open()
    }

    @Test func anUnusableAnswerIsNoToken() async throws {
        let scene = scene
        let manager = TokenManager(
            storage: scene.storage, account: "work", configuration: scene.configuration
        ) { _ in
            TokenRefreshResponse(accessToken: "a\r\nX-Admin: 1", expiresIn: 3_600)
        }
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        await #expect(throws: TokenError.self) { try await manager.validAccessToken() }
        #expect(try #require(await scene.record()).contains("Admin") == false)
    }

    @Test func aCancelledCallerLeavesTheRefreshToTheOthers() async throws {
        let gate = Gate()
        let begun = Gate()
        let server = RotatingServer(begun: begun, answeringAt: gate)
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        let cancelled = Task { try await manager.validAccessToken() }
        await begun.pass()
        let patient = Task { try await manager.validAccessToken() }
        cancelled.cancel()
        await #expect(throws: TokenError.cancelled) { try await cancelled.value }
        gate.open()
        #expect(try await patient.value == "access-1")
        #expect(server.requests == 1)
        #expect(try #require(await scene.record()).contains("refresh-1"))
    }

    @Test func aRefreshThatNobodyWaitsForIsStored() async throws {
        let gate = Gate()
        let begun = Gate()
        let server = RotatingServer(begun: begun, answeringAt: gate)
        let manager = scene.manager(server)
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        let alone = Task { try await manager.validAccessToken() }
        await begun.pass()
        alone.cancel()
        await #expect(throws: TokenError.cancelled) { try await alone.value }
        gate.open()
        #expect(try await manager.validAccessToken() == "access-1")
        #expect(server.requests == 1)
    }

    @Test func anAnswerAfterTheTimeIsOverIsStored() async throws {
        // The server answers only after its task is cancelled.
        let server = RotatingServer { _ in
            await Gate.untilCancelled()
        }
        let manager = scene.manager(server) { $0.refreshTimeout = .milliseconds(1) }
        try await manager.updateTokens(scene.tokens(goodFor: -1))
        #expect(try await manager.validAccessToken() == "access-1")
        #expect(server.requests == 1)
    }

    @Test func anOperationThatDoesNotEndIsWaitedForByNobody() async throws {
        let gate = Gate()
        let coordinator = TokenRefreshCoordinator<Int>(limit: .milliseconds(1))
        let operation: @Sendable () async throws(TokenError) -> Int = {
            await gate.pass()
            return 1
        }
        await #expect(throws: TokenError.timedOut) { try await coordinator.value(operation) }
        await #expect(throws: TokenError.timedOut) { try await coordinator.value(operation) }
        #expect(coordinator.operationsSoFar == 1)
        gate.open()
    }
}

extension Gate {
    /// Returns when the task was cancelled, and does not say so.
    fileprivate static func untilCancelled() async {
        let gate = Gate()
        await withTaskCancellationHandler {
            await gate.pass()
        } onCancel: {
            gate.open()
        }
    }
}
