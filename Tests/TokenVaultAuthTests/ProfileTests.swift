import Testing
import TokenVault

@testable import TokenVaultAuth

/// What a profile keeps of a sign-in.
@Suite struct ProfileTests {
    private static let naming = #"{"authorization_response_iss_parameter_supported":true}"#

    private func kept(_ profile: Profile) throws -> Profile {
        try Secret(encoding: profile).decode(Profile.self)
    }

    /// A provider that names itself in its answers today may not do so tomorrow: the usual address is not kept.
    @Test(arguments: ["{}", naming]) func theUsualAddressIsNotKept(_ metadata: String) throws {
        let profile = try kept(ScriptedProvider.profile(metadata: metadata))
        #expect(profile.settings.redirect == nil)
    }

    @Test func aChosenAddressIsKept() throws {
        var settings = ScriptedProvider.settings
        settings.redirect = RedirectAddress("http://localhost:8400/in")
        let profile = ScriptedProvider.profile(settings)
        #expect(try kept(profile) == profile && profile.settings.redirect == settings.redirect)
    }

    /// The first version knew one address, which is registered at the provider.
    @Test func aProfileOfTheFirstVersionKeepsItsAddress() throws {
        let stored =
            #"{"version":1,"issuer":"https://id.example.com","metadata":"{}","clientID":"fake","#
            + #""authentication":"none","scopes":[],"redirectPort":8400}"#
        let profile = try Secret(utf8: stored).decode(Profile.self)
        #expect(profile.settings.redirect?.text == "http://127.0.0.1:8400/callback")
        #expect(profile.settings.parameters == [:] && profile.settings.endpoints == nil)
    }

    /// All settings, under their stored names.
    @Test func everySettingIsKept() throws {
        let stored = [
            #""allowedOrigins":["https://login.example.com"]"#, #""authentication":"client_secret_post""#,
            #""certificateFile":"/etc/fake.pem""#, #""clientID":"fake""#,
            #""clientSecret":"not a real secret""#,
            #""endpoints":{"token":"https://id.example.com/token"}"#, #""flow":"device""#,
            #""hasIssuerPath":true"#, #""issuer":"https://id.example.com""#, #""keepsPrevious":true"#,
            #""metadata":"{}""#, #""parameters":{"prompt":"consent"}"#,
            #""redirectAddress":"http://localhost/in""#, #""redirectPort":8400"#,
            #""resources":["https://api.example.com/"]"#, #""scopes":["openid"]"#,
            #""trustedAudiences":["another"]"#, #""usesDPoP":true"#, #""version":4"#,
        ]
        let identity = [
            #""method":"private_key_jwt""#, #""key":"fake key""#, #""keyID":"k""#, #""teamID":"t""#,
        ]
        let members = stored + ["\"clientIdentity\":{\(identity.joined(separator: ","))}"]
        let text = "{\(members.joined(separator: ","))}"
        let profile = try Secret(utf8: text).decode(Profile.self)
        #expect(try kept(profile) == profile)
        let encoded = try #require(try Secret(encoding: profile).unprotectedText())
        for member in stored + identity { #expect(encoded.replacing("\\/", with: "/").contains(member)) }
        #expect(profile.settings.flow == .device && profile.settings.redirect?.port == 8_400)
    }

    @Test func aVersion2DeviceProfileKeepsItsFlow() throws {
        let stored =
            #"{"version":2,"issuer":"https://id.example.com","metadata":"{}","clientID":"fake","device":true,"#
            + #""authentication":"none","scopes":[],"redirectPort":0,"hasIssuerPath":true}"#
        let profile = try Secret(utf8: stored).decode(Profile.self)
        #expect(profile.settings.flow == .device && profile.settings.redirect == nil)
    }

    /// An older program would ignore new members, so the version is higher.
    @Test func theProfileVersionIsFour() throws {
        #expect(ScriptedProvider.profile().version == 4)
    }

    /// The address as the provider published it, with the client's name in the form of a query.
    @Test func theEndSessionAddressHasTheClient() throws {
        let metadata = #"{"end_session_endpoint":"https://id.example.com/end?p=a%2Bb"}"#
        let settings = SignInSettings(issuer: "https://id.example.com", clientID: "a+b&c;\u{e4}")
        let profile = Profile(settings, metadata: metadata, authentication: .none)
        #expect(
            profile.endSessionAddress == "https://id.example.com/end?p=a%2Bb&client_id=a%2Bb%26c%3B%C3%A4")
    }
}
