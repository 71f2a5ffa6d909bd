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
        #expect(profile.redirect == nil && profile.redirectAddress == nil)
    }

    @Test func aChosenAddressIsKept() throws {
        var settings = ScriptedProvider.settings
        settings.redirect = RedirectAddress("http://localhost:8400/in")
        #expect(try kept(ScriptedProvider.profile(settings)).redirect == settings.redirect)
    }

    /// The first version knew one address, which is registered at the provider.
    @Test func aProfileOfTheFirstVersionKeepsItsAddress() throws {
        let stored =
            #"{"version":1,"issuer":"https://id.example.com","metadata":"{}","clientID":"fake","#
            + #""authentication":"none","scopes":[],"redirectPort":8400}"#
        let profile = try Secret(utf8: stored).decode(Profile.self)
        #expect(profile.redirect?.text == "http://127.0.0.1:8400/callback")
        #expect(profile.parameters == nil && profile.endpoints == nil)
    }

    /// An older program would ignore new members, so the version is higher.
    @Test func theProfileVersionIsTwo() throws {
        #expect(ScriptedProvider.profile().version == 2)
    }
}
