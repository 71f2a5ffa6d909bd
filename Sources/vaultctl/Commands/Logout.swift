import ArgumentParser
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

struct Logout: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "End a session, here and at the provider.",
        discussion: """
            The session is gone from the vault first, and in any case. Then the provider is told that what it gave is not to be \
            accepted any more: when it could not be told, that is said, with exit status 8, or 10 when it may have heard. After \
            a renewal that had no answer the provider may have given newer tokens than those it can be told of: that is said as \
            well, with exit status 10. The profile stays, for \"vaultctl login\" to sign in again. Exit status 3 when nobody is \
            signed in.

            Examples:
              vaultctl logout work
              vaultctl logout work --forget-profile
            """)

    @Argument(help: "The profile's name, as given to \"vaultctl login\".") var profile: String
    @Flag(help: "Delete the profile as well.") var forgetProfile = false
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let name = try LoginPlace.name(profile)
        guard !location.readOnly else { throw .readOnlySignIn }
        let place = try session.loginPlace()
        // First, so that it is gone whatever the network does, and whoever ends this.
        let ended = try place.end(name, forgetsProfile: forgetProfile)
        guard let session = ended.session else {
            guard ended.profile != nil else { throw .noProfile }
            guard forgetProfile else { throw .notSignedIn(name) }
            return .done
        }
        let leavesTokens = place.mayHaveLeft(session, of: name)
        try tellProvider(session, ended.profile?.content, console)
        if leavesTokens, ended.profile?.content?.offersRevocation ?? false { throw .newerSession }
        return .done
    }

    private func tellProvider(
        _ session: KeptSession, _ profile: LoginProfile?, _ console: Console
    ) throws(CommandFailure) {
        guard let tokens = session.tokens, let profile, session.source == profile.source else {
            throw CommandFailure(
                .unavailable, "what was stored does not say which provider gave the session", ""
            ).afterSigningOut
        }
        guard profile.offersRevocation else {
            return console.note("the provider has no way to be told: what it gave is good until it expires")
        }
        let program: OAuthProgram
        do throws(CommandFailure) { program = try OAuthProgram.find() } catch { throw error.afterSigningOut }
        do throws(OAuthProgram.Trouble) {
            try ProfileProvider(profile: profile, program: program, deadline: console.deadline).revoke(tokens)
        } catch {
            throw CommandFailure(untold: error).afterSigningOut
        }
    }
}
