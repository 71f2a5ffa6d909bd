#if OAuth
import Foundation
import TestLanes
import Testing
import TokenVault
@testable import TokenVaultAuth
@testable import TokenVaultOAuth

/// Whatever is printed, dumped or mirrored of all this has no secret in it.
@Suite(.tags(.provider), .from(.all)) struct RedactionTests {
    private func everything(_ value: Any) -> String {
        var dumped = ""
        dump(value, to: &dumped)
        return "\(value) \(String(reflecting: value)) \(dumped)"
    }

    @Test func nothingShowsASecret() async throws {
        let secret = "fake-s3cret"
        let server = try await ScriptedServer { asked in
            asked.path == "/device"
                ? .json(
                    #"{"device_code":"\#(secret)","user_code":"\#(secret)","expires_in":9,"verification_uri":"https://a.example"}"#
                )
                : .json(#"{"access_token":"\#(secret)","refresh_token":"\#(secret)","token_type":"Bearer"}"#)
        }
        let authentication = ClientAuthentication.clientSecretPost(Secret(utf8: secret))
        let client = try client(server, authentication: authentication)
        let key = DPoPKey()
        let pem = try #require(key.pem.unprotectedText())
        let request = try client.authorizationRequest(redirectURI: "https://a.example/cb", scopes: ["openid"])
        let verifier = try #require(request.proofKey.verifier.unprotectedText())
        let state = try #require(request.state.unprotectedText())
        let provider = try metadata("https://id.example")
        let values: [Any] = [
            authentication, client, request, key,
            ProofRequest(
                key: pem, token: secret,
                target: ProofTarget(method: "GET", url: "https://a.example/", nonce: nil)),
            TokenExchange(token: secret, audience: nil, resources: [], scopes: [], dpopKey: pem),
            RefreshRequest(
                forwarding: secret, scope: nil, idToken: nil, dpopKey: key.pem,
                isRetryOfUnknownOutcome: false), try await client.authorizeDevice(scopes: []),
            try await client.clientCredentials(), IDTokenExpectation(nonce: secret, accessToken: secret),
            try AuthorizationAnswer(
                query: "state=s&code=\(secret)", expecting: Secret(utf8: "s"), from: provider),
        ]
        for value in values {
            let text = everything(value)
            for hidden in [secret, verifier, state, String(pem.dropFirst(40).prefix(20))] {
                #expect(!text.contains(hidden))
            }
        }
    }

    @Test func errorsRepeatNothingOfTheServers() async throws {
        let secret = "fake-s3cret"
        let bodies = [
            #"{"error":"\#(secret)","error_description":"\#(secret)"}"#, secret,
            #"{"access_token":"\#(secret)\n","token_type":"Bearer"}"#,
            #"{"access_token":"\#(secret)","token_type":"\#(secret)"}"#,
        ]
        for body in bodies {
            for status in [200, 400, 500] {
                let server = try await ScriptedServer(always: .json(body, status: status))
                let client = try client(server, authentication: .clientSecretPost(Secret(utf8: "fake")))
                let error = try #require(
                    await failure { () async throws(OAuthError) in try await client.clientCredentials() })
                #expect(!everything(error).contains(secret))
                let failed = try #require(await refreshRequest(client).failure)
                #expect(!everything(failed).contains(secret))
            }
        }
    }

    @Test func everyErrorSaysWhatToDo() {
        let errors: [OAuthError] =
            [
                .invalid("x"), .invalidKey, .invalidMetadata("x"), .foreignEndpoint("https://x"),
                .unsupported("x"),
                .malformedResponse("x"),
                .accessDenied,
                .requestFailed(RefreshFailure(.notSent)), .authorizationRefused("x"), .wrongIssuer,
                .wrongState,
                .timedOut, .cannotListen, .cancelled,
            ] + IDTokenProblem.allCases.map { .invalidIDToken($0) }
        for error in errors {
            #expect(error.description.contains(": "))
            #expect(!error.description.contains("\n"))
        }
        #expect(Set(errors.map(\.description)).count == errors.count)
    }
}
#endif
