import ArgumentParser
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

struct Logout: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "End a session, here and at the provider.",
        discussion: """
            The provider is told that what it gave is not to be accepted any more. The session is gone from the vault in any \
            case: when the provider could not be told, that is said, with exit status 8, or 10 when it may have heard. The \
            profile stays, for \"vaultctl login\" to sign in again. Exit status 3 when nobody is signed in.

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
        guard !location.readOnly else {
            throw .usage("--read-only, and signing out deletes the session", "leave it out")
        }
        let place = try session.loginPlace()
        let stored: StoredProfile?
        do throws(CommandFailure) { stored = try place.profile(name) } catch {
            // Of a newer program's, the session can still be ended here.
            guard error.status == .unavailable, error.cause == nil else { throw error }
            stored = nil
        }
        let isSignedIn = try isSignedIn(name, place)
        var failure: CommandFailure?
        if isSignedIn {
            do throws(CommandFailure) { try end(name, stored, in: place, console) } catch { failure = error }
        }
        // Not while the session is still here: its provider would not be known any more.
        let isStillThere = failure == nil ? false : try self.isSignedIn(name, place)
        let wasForgotten = forgetProfile && !isStillThere ? try place.forget(name) : false
        if let failure { throw failure }
        guard isSignedIn || wasForgotten else { throw stored == nil ? .noProfile : .notSignedIn }
        return .done
    }

    private func isSignedIn(_ name: String, _ place: LoginPlace) throws(CommandFailure) -> Bool {
        do throws(TokenError) {
            _ = try StoredToken.look(
                for: name, in: place.blocking, configuration: TokenManager.Configuration())
            return true
        } catch {
            switch error {
            case .tokenNotFound: return false
            case .unknownRecord: return true
            default: throw CommandFailure(error, nil)
            }
        }
    }

    private func end(
        _ name: String, _ stored: StoredProfile?, in place: LoginPlace, _ console: Console
    ) throws(CommandFailure) {
        let program: Result<OAuthProgram, CommandFailure>
        do throws(CommandFailure) { program = .success(try OAuthProgram.find()) } catch {
            program = .failure(error)
        }
        let session = ProfileSession(
            place, name, stored, program: program, deadline: console.deadline)
        guard stored?.profile.offersRevocation ?? true else {
            try session.wait { (manager) async throws(TokenError) in _ = try await manager.clearTokens() }
            console.note("the provider has no way to be told: what it gave is good until it expires")
            return
        }
        try session.wait { (manager) async throws(TokenError) in try await manager.revokeTokens() }
    }
}
