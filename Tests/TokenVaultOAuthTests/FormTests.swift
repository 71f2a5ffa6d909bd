#if OAuth
import Foundation
import TestLanes
import Testing
import TokenVault
import TokenVaultCrypto
@testable import TokenVaultAuth
@testable import TokenVaultOAuth

/// What goes over the wire and comes from it, without a wire.
@Suite(.tags(.provider), .from(.all)) struct FormTests {
    /// RFC 7636 appendix B.
    @Test func theChallengeOfTheStandardsVerifier() {
        let key = ProofKey(verifier: Secret(utf8: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"))
        #expect(key.challenge == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
    }

    @Test func verifiersAreNewAndOfTheRightLetters() throws {
        let verifiers = try (0..<100).map { _ in try #require(ProofKey().verifier.unprotectedText()) }
        #expect(Set(verifiers).count == 100)
        for verifier in verifiers {
            #expect(verifier.utf8.count == 43)
            #expect(Base64.urlDecode(verifier)?.count == 32)
        }
    }

    @Test func formsAreEncodedAsTheStandardWants() {
        #expect(FormEncoding.encode(" %&+£€") == "+%25%26%2B%C2%A3%E2%82%AC")  // RFC 6749 appendix B
        #expect(FormEncoding.encode([("a", "b c"), ("d", "")]) == "a=b+c&d=")
        #expect(FormEncoding.decode("a=%C3%A4+b&c&d=e=f") == ["a": "ä b", "c": "", "d": "e=f"])
    }

    @Test(arguments: ["a=1&a=2", "a=%", "a=%4", "a=%zz", "a=%ff", "%ff=1"])
    func formsThatAreNoneAreRefused(_ text: String) { #expect(FormEncoding.decode(text) == nil) }

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
    ])
    func allThreeFormsOfDatesAreRead(_ text: String) {
        #expect(HTTPDate.parse(text, now: Date())?.timeIntervalSince1970 == 784_111_777)
    }

    @Test(arguments: [
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
    ])
    func datesAtTheEdges(_ text: String, _ seconds: Double) {
        #expect(HTTPDate.parse(text, now: Date())?.timeIntervalSince1970 == seconds)
    }

    @Test(arguments: [
        "", "0", "yesterday", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 199 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49 GMT", "Sun, 06 Nov 1994 08:-9:37 GMT", "Sun, 06 Nov 1869 08:49:37 GMT",
    ])
    func datesThatAreNoneAreRefused(_ text: String) { #expect(HTTPDate.parse(text, now: Date()) == nil) }

    @Test func retryAfterIsSecondsOrADateOfTheServer() {
        let now = Date(timeIntervalSince1970: 784_111_777)
        func wait(_ text: String, skew: Double = 0) -> Double? {
            RetryAfter.time(text, now: now, serverDate: now.addingTimeInterval(skew))?.timeIntervalSince(now)
        }
        #expect(wait("120") == 120)
        #expect(wait("Sun, 06 Nov 1994 08:50:37 GMT") == 60)
        // The server's clock is 40 s ahead, so its date is a minute after its own present.
        #expect(wait("Sun, 06 Nov 1994 08:51:17 GMT", skew: 40) == 60)
        #expect(wait("Sun, 06 Nov 1994 08:40:00 GMT") == 0)
        #expect(wait("99999999999999999999999") == 86_400)
        for text in ["", "-1", "soon", "1.5", " 1"] { #expect(wait(text) == nil) }
    }

    @Test(arguments: [
        "ftp://a.example", "https://", "https://user@a.example/", "https://a.example/#f", "a.example",
        "https://a.example/ b", "https://ä.example", "https://a.example:0", "https://a.example:65536",
        "javascript:alert(1)", "https://a.example/\u{1b}[2J",
    ])
    func addressesThatAreNoneAreRefused(_ text: String) { #expect(WebAddress(text) == nil) }

    @Test func onlyThisMachineIsReachedWithoutEncryption() {
        for text in ["https://a.example/x?y=1", "http://127.0.0.1:80/", "http://[::1]/", "http://localhost"] {
            #expect(WebAddress.secure(text) != nil)
        }
        for text in ["http://a.example", "http://127.0.0.1.a.example", "http://10.0.0.1"] {
            #expect(WebAddress(text) != nil)
            #expect(WebAddress.secure(text) == nil)
        }
    }

    private func response(_ body: String) throws(OAuthError) -> TokenResponse {
        try TokenResponse(Array(body.utf8), serverDate: nil)
    }

    @Test func lifetimesAreNumbersOrDigits() throws {
        func lifetime(_ text: String) throws -> Double? {
            try response(#"{"access_token":"a","token_type":"Bearer","expires_in":\#(text)}"#).expiresIn
        }
        #expect(try lifetime("3600") == 3_600)
        #expect(try lifetime(#""3600""#) == 3_600)
        #expect(try lifetime("0.5") == 0.5)
        #expect(try lifetime("null") == nil)
        #expect(try lifetime("1e300") == Lifetime.longest)
        #expect(try lifetime(#""99999999999999999999""#) == Lifetime.longest)
        #expect(try lifetime(#""3600.0""#) == 3_600)
        for text in ["0", "-1", #""-1""#, #""1h""#, #""""#, #"".""#, "true", "[]", #"" 1""#] {
            #expect(try lifetime(text) == nil)
        }
    }

    /// An unusable lifetime differs from a missing lifetime.
    @Test(arguments: [
        ("0", true), ("-1", true), (#""soon""#, true), ("{}", true), ("true", true), ("null", false),
        (#""""#, false), ("60", false), (#""60""#, false),
    ])
    func anUnusableLifetimeIsNoted(_ text: String, _ isUnusable: Bool) throws {
        let response = try response(#"{"access_token":"a","expires_in":\#(text)}"#)
        #expect(response.hasUnusableLifetime == isUnusable)
        let tokens = response.tokens(begun: Date(), scopes: [])
        #expect(tokens.hasUnusableLifetime == isUnusable)
        #expect((tokens.accessTokenExpiry == nil) == (response.expiresIn == nil))
        #expect(try !self.response(#"{"access_token":"a"}"#).hasUnusableLifetime)
    }

    @Test(arguments: ["Bearer", "bearer", "BEARER"])
    func aBearerTokenIsTaken(_ type: String) throws {
        #expect(try response(#"{"access_token":"a","token_type":"\#(type)"}"#).accessToken == "a")
    }

    @Test(arguments: [
        (#"{"access_token":"a","token_type":"mac"}"#, OAuthError.unsupported("bearer tokens")),
        (#"{"access_token":"a","token_type":"DPoP"}"#, .unsupported("bearer tokens")),
        (#"{"token_type":"Bearer"}"#, .malformedResponse("the document")),
        (#"{"access_token":7,"token_type":"Bearer"}"#, .malformedResponse("the document")),
        (#"[]"#, .malformedResponse("the document")), ("", .malformedResponse("the document")),
        (#"{"access_token":"","token_type":"Bearer"}"#, .malformedResponse("the access token")),
        (#"{"access_token":"a\r\nX: y","token_type":"Bearer"}"#, .malformedResponse("the access token")),
        (#"{"access_token":"a b","token_type":"Bearer"}"#, .malformedResponse("the access token")),
        (#"{"access_token":"ä","token_type":"Bearer"}"#, .malformedResponse("the access token")),
        (
            #"{"access_token":"a","token_type":"Bearer","refresh_token":"\u0000"}"#,
            .malformedResponse("the refresh token")
        ),
    ])
    func tokensThatNoHeaderCarriesAreRefused(_ body: String, _ error: OAuthError) {
        #expect(throws: error) { try response(body) }
    }

    @Test func namesAndSecretsAreEncodedBeforeTheyAreJoined() async throws {
        let address = try #require(WebAddress.secure("https://a.example/token"))
        func credentials(_ authentication: ClientAuthentication) async throws -> RequestAuthentication {
            let client = try OAuthClient(
                provider: try ProviderMetadata(issuer: "https://a.example", tokenEndpoint: address.text),
                clientID: "a:b", authentication: authentication, transport: OAuthTransport())
            return try await RequestAuthentication(
                client, audience: address.text, at: address, nil, nonce: nil)
        }
        let basic = try await credentials(.clientSecretBasic(Secret(utf8: "fake:s%")))
        #expect(basic.header == "Basic " + Data("a%3Ab:fake%3As%25".utf8).base64EncodedString())
        #expect(basic.fields.isEmpty)
        let post = try await credentials(.clientSecretPost(Secret(utf8: "fake")))
        #expect(post.header == nil)
        #expect(post.fields.map(\.name) == ["client_id", "client_secret"])
    }
}
#endif
