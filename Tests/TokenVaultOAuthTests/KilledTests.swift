#if OAuth
import Foundation
import Glibc
import TestLanes
import Testing
import TokenVault
@testable import TokenVaultAuth
@testable import TokenVaultOAuth

/// Processes that are killed at each step of a refresh. The next process finds new tokens, or knows that the
/// old token may have been used and tries it once. The provider ends the session of a client that uses a
/// token twice.
@Suite(.tags(.provider), .from(.all), .serialized) struct KilledTests {
    /// Where a process is killed, and what is so afterwards.
    struct Place: Sendable, CustomTestStringConvertible {
        let name: String
        /// Whether the refresh token had reached the provider, and was used up by it.
        let wasUsed: Bool
        /// What is stored: the old tokens, without an intent or with one, or the new tokens.
        let left: Left
        var testDescription: String { name }

        enum Left { case old, intent, new }

        /// What the next process asks for: nothing when the new tokens are there.
        var asks: [String] {
            switch left {
            case .old: ["first"]
            case .intent: ["again"]
            case .new: []
            }
        }
        /// Whether the answer is lost for good, where a provider takes no token twice.
        var isLost: Bool { wasUsed && left != .new }
    }

    static let places = [
        Place(name: "leaseTaken", wasUsed: false, left: .old),
        Place(name: "intentStored", wasUsed: false, left: .intent),
        Place(name: "answered", wasUsed: true, left: .intent),
        Place(name: "writing", wasUsed: true, left: .intent),
        Place(name: "synchronizing", wasUsed: true, left: .new),
        Place(name: "saved", wasUsed: true, left: .new),
    ]

    let scene: WorkerScene

    init() async throws { scene = try await WorkerScene() }

    /// Kills a worker at `place` and looks at what it left.
    private func kill(at place: Place, _ account: String = "work") throws {
        let (before, requests) = (try #require(try scene.record(account)), try scene.requests())
        let victim = try scene.run(account, endingAt: place.name)
        #expect(victim.signal == SIGKILL)
        // No caller got a token that might still be lost.
        #expect(victim.lines.allSatisfy { !$0.hasSuffix(" new") || $0 == "saved new" })
        #expect(victim.token == nil)
        #expect(try scene.requests() == requests + (place.wasUsed ? 1 : 0))
        let after = try #require(try scene.record(account))
        #expect((after.intent != nil) == (place.left == .intent))
        #expect((after.tokens != before.tokens) == (place.left == .new))
        #expect(after.session == before.session)
    }

    /// A hundred kills in a row, of one session: with a provider that takes a token again for a while, it never ends.
    @Test(.timeLimit(.minutes(20))) func aSessionOutlivesAHundredKills() async throws {
        try scene.provider.tell("grace", ["seconds": 100_000])
        try await scene.signIn("alice")
        try await scene.signIn("bob", at: "home")
        let home = try await scene.storage.item(for: "auth/session/home")
        for round in 0..<102 {
            let place = Self.places[round % Self.places.count]
            scene.goOn()
            try kill(at: place)
            let requests = try scene.requests()
            let next = try scene.run()
            #expect(next.asked == place.asks, "\(place.name)")
            #expect(try scene.requests() == requests + place.asks.count)
            let token = try #require(next.token, "\(place.name): \(next.lines)")
            let record = try #require(try scene.record())
            #expect(record.tokens.accessToken == token)
            #expect(record.intent == nil)
            // There is one session, and the provider knows its tokens.
            #expect(try scene.sessions("alice") == [1, 1])
            #expect(try await scene.owner(of: token) == "alice")
        }
        // The other account's record is unchanged.
        let untouched = try await scene.storage.item(for: "auth/session/home")
        #expect(untouched?.secret == home?.secret)
        #expect(untouched?.metadata.generation == home?.metadata.generation)
        let bobs = try scene.run("home")
        #expect(try await scene.owner(of: try #require(bobs.token)) == "bob")
    }

    /// With a provider that takes no token twice: a session lives on unless its answer is lost. Then it ends as one, and the
    /// next begins.
    @Test(.timeLimit(.minutes(20)), arguments: places)
    func whoseAnswerIsLostIsSignedOutAndNobodyElse(_ place: Place) async throws {
        try await scene.signIn("bob", at: "home")
        try await scene.signIn("alice")
        scene.goOn()
        try kill(at: place)
        let next = try scene.run()
        #expect(next.asked == place.asks)
        if place.isLost {
            #expect(next.lines.last == "failed \(TokenError.sessionExpired)")
            #expect(try scene.record() == nil)
            #expect(await scene.manager().authState() == .signedOut)
            await #expect(throws: TokenError.tokenNotFound) { try await scene.manager().validAccessToken() }
            #expect(try scene.run().lines.last == "failed \(TokenError.tokenNotFound)")
            #expect(try scene.sessions("alice") == [0, 0])
            try await scene.signIn("alice")
        }
        let token = try #require(try scene.run().token)
        #expect(try scene.run().token == token)
        #expect(try await scene.owner(of: token) == "alice")
        #expect(try scene.sessions("alice") == [1, 1])
        #expect(try await scene.owner(of: try #require(try scene.run("home").token)) == "bob")
        #expect(try scene.sessions("bob") == [1, 1])
    }

    /// Killed while the provider has the request: before it looked at it, or when it has done what was asked.
    @Test(.timeLimit(.minutes(20)), arguments: ["hang", "hang-after"], [0, 100_000])
    func aRequestThatIsUnderWay(_ how: String, _ grace: Int) async throws {
        try await signInBefore(how, grace)
        let victim = try scene.start()
        _ = try await scene.provider.have("held", ["count": 1])
        victim.kill()
        #expect(try victim.end().signal == SIGKILL)
        #expect(try #require(try scene.record()).intent?.isOver == false)
        try await expectOneTryMore(isUsed: how == "hang-after", grace)
    }

    /// The answer is lost on the way, and the process is killed before its next try.
    @Test(.timeLimit(.minutes(20)), arguments: ["drop-before", "drop-after"], [0, 100_000])
    func aRequestWhoseAnswerWasLost(_ how: String, _ grace: Int) async throws {
        try await signInBefore(how, grace)
        let victim = try scene.run(endingAt: "pausing")
        #expect(victim.signal == SIGKILL)
        #expect(victim.asked == ["first"])
        #expect(try #require(try scene.record()).intent?.isOver == true)
        // Ends the pause.
        scene.goOn()
        try await expectOneTryMore(isUsed: how == "drop-after", grace)
    }

    /// Signs in, at a provider that fails in the way `how` with the first refresh.
    private func signInBefore(_ how: String, _ grace: Int) async throws {
        try scene.provider.tell("grace", ["seconds": grace])
        try await scene.signIn("alice")
        scene.goOn()
        try scene.provider.tell(
            "fail", ["path": "/o/token/", "how": how, "grant_type": "refresh_token"])
    }

    /// The next process tries the old token once: it is good unless it was used, and the provider does not take it again.
    private func expectOneTryMore(isUsed: Bool, _ grace: Int) async throws {
        #expect(try scene.requests() == 1)
        let next = try scene.run()
        #expect(next.asked == ["again"])
        #expect(try scene.requests() == 2)
        if isUsed, grace == 0 {
            #expect(next.lines.last == "failed \(TokenError.sessionExpired)")
            #expect(try scene.record() == nil)
            #expect(await scene.manager().authState() == .signedOut)
            #expect(try scene.sessions("alice") == [0, 0])
        } else {
            #expect(try await scene.owner(of: try #require(next.token)) == "alice")
            #expect(try scene.sessions("alice") == [1, 1])
        }
    }

    /// Two accounts at once, each with an answer that no process stored: each gets its own tokens.
    @Test(.timeLimit(.minutes(20))) func accountsThatAreKilledTogetherKeepTheirOwn() async throws {
        try scene.provider.tell("grace", ["seconds": 100_000])
        try await scene.signIn("alice")
        try await scene.signIn("bob", at: "home")
        for _ in 0..<10 {
            scene.goOn()
            let victims = [
                try scene.start(endingAt: "answered"), try scene.start("home", endingAt: "answered"),
            ]
            for victim in victims { #expect(try victim.end().signal == SIGKILL) }
            let next = [try scene.start(), try scene.start("home")]
            let tokens = try next.map { try #require(try $0.end().token) }
            #expect(try await scene.owner(of: tokens[0]) == "alice")
            #expect(try await scene.owner(of: tokens[1]) == "bob")
        }
        #expect(try scene.requests() == 40)
        #expect(try scene.sessions("alice") == [1, 1])
        #expect(try scene.sessions("bob") == [1, 1])
    }

    /// A user signs in after the kill and stays signed in. Nothing of the earlier refresh reaches that user's
    /// session.
    @Test(.timeLimit(.minutes(20)), arguments: places)
    func theNextUserIsNotTouched(_ place: Place) async throws {
        try scene.provider.tell("grace", ["seconds": 100_000])
        try await scene.signIn("alice")
        scene.goOn()
        try kill(at: place)
        let requests = try scene.requests()
        try await scene.signIn("bob")
        let bobs = try #require(try scene.record())
        #expect(bobs.intent == nil)
        // Bob's token is valid for an hour of the present clock.
        #expect(try await scene.manager().validAccessToken() == bobs.tokens.accessToken)
        #expect(try scene.requests() == requests)
        let next = try scene.run()
        #expect(next.asked == ["first"])
        let token = try #require(next.token)
        #expect(try await scene.owner(of: token) == "bob")
        #expect(try scene.record()?.session == bobs.session)
        #expect(try scene.sessions("bob") == [1, 1])
    }
}
#endif
