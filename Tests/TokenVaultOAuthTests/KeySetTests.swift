#if OAuth
import Foundation
import TestLanes
import Testing
import TokenVault
import TokenVaultAuth
@testable import TokenVaultOAuth

/// When a provider's keys are fetched, and when not.
@Suite(.tags(.provider), .from(.all)) struct KeySetTests {
    @Test func keysAreFetchedOnceAndKept() async throws {
        let key = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([key])
        for _ in 0..<10 { #expect(await provider.problem(try key.sign(provider.claims())) == nil) }
        #expect(provider.fetches == 1)
    }

    @Test func aKeyThatIsNewIsFetched() async throws {
        let old = try #require(SigningKey.make("ES256", id: "old"))
        let new = try #require(SigningKey.make("ES256", id: "new"))
        let provider = try await KeyProvider([old])
        #expect(await provider.problem(try old.sign(provider.claims())) == nil)
        provider.publish([old.jwk, new.jwk])
        provider.clock.advance(60)
        #expect(await provider.problem(try new.sign(provider.claims())) == nil)
        #expect(await provider.problem(try old.sign(provider.claims())) == nil)
        #expect(provider.fetches == 2)
    }

    @Test func namesThatAreMadeUpMakeNoStorm() async throws {
        let key = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([key])
        #expect(await provider.problem(try key.sign(provider.claims())) == nil)
        for number in 0..<100 {
            let forged = try #require(SigningKey.make("ES256", id: "made-up-\(number)"))
            #expect(await provider.problem(try forged.sign(provider.claims())) == .unknownKey)
        }
        #expect(provider.fetches == 1)
        provider.clock.advance(60)
        for number in 0..<100 {
            let forged = try #require(SigningKey.make("ES256", id: "made-up-\(number)"))
            #expect(await provider.problem(try forged.sign(provider.claims())) == .unknownKey)
        }
        #expect(provider.fetches == 2)
        #expect(await provider.problem(try key.sign(provider.claims())) == nil)
    }

    @Test func manyAtOnceFetchOnce() async throws {
        let key = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([key])
        let token = try key.sign(provider.claims())
        await withTaskGroup(of: IDTokenProblem?.self) { group in
            for _ in 0..<100 { group.addTask { await provider.problem(token) } }
            for await problem in group { #expect(problem == nil) }
        }
        #expect(provider.fetches == 1)
    }

    @Test func aKeyThatWasTakenBackIsForgotten() async throws {
        let old = try #require(SigningKey.make("ES256", id: "old"))
        let new = try #require(SigningKey.make("ES256", id: "new"))
        let provider = try await KeyProvider([old])
        #expect(await provider.problem(try old.sign(provider.claims())) == nil)
        provider.publish([new.jwk])
        provider.clock.advance(3_600)
        #expect(await provider.problem(try old.sign(provider.claims())) == .unknownKey)
    }

    @Test func keysThatCannotBeFetchedAreNoWrongToken() async throws {
        let key = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([key])
        provider.publish(nil)
        let token = try key.sign(provider.claims())
        let error = OAuthError.requestFailed(RefreshFailure(.serverError(500)))
        for _ in 0..<5 {
            #expect(
                await failure { () async throws(OAuthError) in try await provider.validator.validate(token) }
                    == error)
        }
        #expect(provider.fetches == 1)
        // Known keys stay valid while the provider does not answer.
        provider.publish([key.jwk])
        provider.clock.advance(60)
        #expect(await provider.problem(try key.sign(provider.claims())) == nil)
        provider.publish(nil)
        provider.clock.advance(7_200)
        #expect(await provider.problem(try key.sign(provider.claims())) == nil)
    }

    /// A caller can stop waiting for a fetch that does not end.
    @Test func aFetchThatDoesNotEndKeepsNobodyWaiting() async throws {
        let key = try #require(SigningKey.make("ES256"))
        let begun = Signal()
        let server = try await ScriptedServer { _ in
            begun.give()
            return ScriptedServer.Reply(stall: .beforeHead)
        }
        let client = try client(server)
        let token = try key.sign("{}")
        let asking = Task {
            await failure { () async throws(OAuthError) in try await client.idTokenValidator.validate(token) }
        }
        await begun.wait()
        asking.cancel()
        #expect(await asking.value == .cancelled)
    }

    @Test func keysOfUnknownKindsSpoilNoOthers() async throws {
        let key = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([])
        provider.publish([
            #"{"kty":"new","crv":7}"#, #"{"use":"enc"}"#, "7", #"{"kty":"RSA","kid":"key-2"}"#, key.jwk,
        ])
        #expect(await provider.problem(try key.sign(provider.claims())) == nil)
        let broken = try #require(SigningKey.make("RS256", id: "key-2"))
        #expect(await provider.problem(try broken.sign(provider.claims())) == .signature)
    }

    /// Each key is tried, and after them those of a new fetch.
    @Test func aTokenThatNamesNoKeyIsCheckedByEach() async throws {
        let key = try #require(SigningKey.make("ES256", id: nil))
        let other = try #require(SigningKey.make("ES256", id: "other"))
        let rsa = try #require(SigningKey.make("RS256", id: "rsa"))
        let provider = try await KeyProvider([other, rsa, key])
        let token = try key.sign(provider.claims())
        #expect(await provider.problem(token) == nil)
        provider.publish([other.jwk, rsa.jwk])
        provider.clock.advance(3_600)
        let forged = try key.sign(provider.claims())
        #expect(await provider.problem(forged) == .signature)
        let fetches = provider.fetches
        for _ in 0..<10 { #expect(await provider.problem(forged) == .signature) }
        #expect(provider.fetches == fetches)
        provider.publish([other.jwk, key.jwk])
        provider.clock.advance(60)
        #expect(await provider.problem(forged) == nil)
        #expect(provider.fetches == fetches + 1)
    }

    @Test func twoKeysOfOneNameAreNone() async throws {
        let key = try #require(SigningKey.make("ES256"))
        let other = try #require(SigningKey.make("ES256"))
        let provider = try await KeyProvider([key, other])
        #expect(await provider.problem(try key.sign(provider.claims())) == .unknownKey)
    }
}
#endif
