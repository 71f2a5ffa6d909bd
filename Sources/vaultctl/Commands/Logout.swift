import ArgumentParser
import ProgramSupport
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

struct Logout: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "End a session, here and at the provider.",
            description: """
                The command deletes the session from the vault first, whatever the provider does. Then the command revokes the \
                tokens at the provider. The profile stays, and "vaultctl login PROFILE" signs in again.

                If the provider offers no revocation, the tokens stay valid until they expire. Standard error says so, and the \
                exit status is 0.

                After a renewal with an unknown outcome, the provider may have issued newer tokens, which cannot be revoked. \
                Another program may still wait for the answer to a renewal. If that program still runs when the answer comes, it revokes its new tokens. Standard error says so, and the exit status does not.

                After Ctrl-C, the revocation has a few more seconds. A second Ctrl-C ends it at once. Without --browser, the session \
                of your browser goes on. With --browser, nothing is opened if the profile is signed out.
                """,
            examples: [
                "vaultctl logout work",
                "vaultctl logout work --browser",
                "vaultctl logout work --forget-profile",
            ],
            statuses: [
                .failure: "A signal ended the command, or another failure.",
                .notFound: "The profile is signed out, or there is no such profile.",
                .wrongDevice: "The session belongs to another device.",
                .unavailable:
                    "Signed out here, but the provider was not reached. Or the vault is not available, or the provider has no page for --browser: nothing was ended.",
                .conflict: "Other programs keep changing the profile, or the same vault is at two paths.",
                .timedOut:
                    "Signed out here, but the outcome at the provider is unknown, or the provider may have issued newer tokens. Or the vault did not answer in time.",
            ],
            standard: .items))

    @Argument(
        help: "The profile's name, as given to \"vaultctl login\".", completion: NameCompletion.profiles)
    var profile: String
    @Flag(help: "Delete the profile as well.") var forgetProfile = false
    @Flag(help: "Also open the provider's page that ends the session of your browser.") var browser = false
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var output: VerboseOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let name = try ProfileStore.name(profile)
        guard !location.readOnly else { throw .readOnlySignIn }
        let place = try session.profileStore()
        // The profile may be gone afterwards.
        let page = browser ? try endSessionAddress(name, place) : nil
        try OAuthProgram.requireRoom()
        let queue = ForegroundQueue<Console>()
        let signals = SignalGuard(meanwhile: "the session is being revoked at the provider") {
            queue.cancel()
        }
        var signOut = SignOutTransaction(
            WorkerProvider(
                program: OAuthProgram.found, signals: signals, wantsErrorTexts: output.verbose,
                show: WorkerProvider.showing(errorTextsOn: queue)),
            place, name)
        signOut.forgetsProfile = forgetProfile
        signOut.deadline = console.deadline
        signOut.entered = { signals.note($0) }
        try signals.during { () throws(CommandFailure) in
            let outcome = queue.run(console) { [signOut] in await signOut.run() }
            if let page, outcome.isEnded { show(page, console) }
            do throws(CommandFailure) { try report(outcome, name, console) } catch {
                guard signals.signal != nil else { throw error }
                // A signal takes effect before a failure is printed, so a note replaces the failure.
                console.note("\(error.happened): \(error.advice)")
                throw .interrupted
            }
        }
        return .done
    }

    /// Returns the address of the page that ends the browser's session. Throws `unavailable` when the provider has
    /// none, before the session is ended.
    private func endSessionAddress(
        _ name: String, _ place: ProfileStore
    ) throws(CommandFailure) -> String {
        let stored = try reading(name) { () throws(TokenError) in try place.profile(name) }
        guard let profile = try stored?.profile else { throw .noProfile }
        guard let address = profile.endSessionAddress, SignInConversation.isFit(address) else {
            throw CommandFailure(
                .unavailable, "the provider has no page that ends a browser's session, and nothing was ended",
                "leave --browser out, and sign out at the provider's own page")
        }
        return address
    }

    private func show(_ page: String, _ console: Console) {
        guard let browser = Browser.find(for: page) else {
            return console.note("to end the session of your browser, open \(page)")
        }
        console.note("Opening your browser. If nothing happens, visit: \(page)")
        do throws(SystemFailure) { try browser.start(orAdvise: "open the address above") } catch {
            console.note("the browser does not start: open the address above")
        }
    }

    private func report(
        _ outcome: SignOutTransaction<WorkerProvider>.Outcome, _ name: String, _ console: Console
    ) throws(CommandFailure) {
        switch outcome {
        case .notSignedIn(let hadProfile):
            guard hadProfile else { throw .noProfile }
            guard forgetProfile else { throw .notSignedIn(name) }
        case .notEnded(let error): throw CommandFailure(error, nil, name).beforeSigningOut
        case .cancelled: throw .perhapsSignedOut
        case .endedWithoutProvider:
            throw CommandFailure(
                .unavailable, "the stored session does not name its provider", ""
            ).afterSigningOut
        case .ended(.notOffered, _):
            console.note("the provider offers no revocation: its tokens are valid until they expire")
        case .ended(let revocation, let newer):
            if case .awaited = newer { console.note(CommandFailure.waitedFor) }
            if case .failed(let trouble) = revocation {
                throw CommandFailure(untold: trouble).afterSigningOut
            }
            if case .lost = newer { throw .newerSession }
        }
    }
}

extension CommandFailure {
    /// The failure to delete the session, in which case no revocation is sent to the provider.
    fileprivate var beforeSigningOut: CommandFailure {
        // After these failures the user unlocks the vault or tries again, and signs out then.
        guard ![.locked, .usage, .conflict].contains(status) else { return self }
        var failure = self
        failure.happened =
            mayBeDone
            ? "the session may still be in the vault, and the provider was not notified: \(happened)"
            : "still signed in, and the provider was not notified: \(happened)"
        failure.advice += "; you can also end the session at the provider's own page"
        failure.cause = nil
        return failure
    }

    /// A signal ended the wait for the deletion of the session.
    fileprivate static let perhapsSignedOut = CommandFailure(
        .failure, "the session may still be in the vault, and the provider was not notified",
        "check with \"vaultctl profiles\", and end the session at the provider's own page")
}
