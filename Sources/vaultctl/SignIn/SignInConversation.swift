import OAuthWire
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

/// The messages to the user during a sign-in.
final class SignInConversation {
    let console: Console
    /// The profile whose name alone signs in; `nil` when the command needs more options.
    let profile: String?
    /// Whether the browser is started, rather than only the address shown.
    let opensBrowser: Bool
    /// The longest wait for the user, in seconds.
    let limit: Double
    /// Addresses at the origins where the user is expected to sign in.
    let knownOrigins: [String]
    /// Whether the user can paste the callback address.
    let takesPaste: Bool
    /// The options to check when the page shows a mistake; `nil` before anything was shown.
    private(set) var options: String?

    init(
        console: Console, profile: String?, opensBrowser: Bool, limit: Double, knownOrigins: [String],
        takesPaste: Bool
    ) {
        self.console = console
        self.profile = profile
        self.opensBrowser = opensBrowser
        self.limit = limit
        self.knownOrigins = knownOrigins
        self.takesPaste = takesPaste
    }

    /// Shows `reply`. Returns the failure to show it.
    func show(_ reply: WorkerReply) -> CommandFailure? {
        do throws(CommandFailure) {
            switch reply {
            case .open(let address, let page): try open(address, page ?? address)
            case .device(let prompt): try tell(prompt)
            case .errorText(let text): console.noteErrorText(text)
            case .wrongAnswer:
                console.note(
                    "that is not the answer to this sign-in: paste the whole address of the browser's last page"
                )
            case .signedIn, .refreshed, .exchanged, .proved, .revoked, .failed: break
            }
            return nil
        } catch {
            return error
        }
    }

    /// Prints that a pasted line was too long for the terminal.
    func noteCutLine() {
        console.note("the terminal cut the pasted line at 4,095 bytes: the address is too long to paste")
    }

    /// Tells why what the provider gave cannot be stored yet.
    func tellOfWaiting(_ error: TokenError, _ name: String) {
        let told = CommandFailure(error, nil, name).told(passingOver: console.variablePassedOver)
        console.note(
            "signed in, but the tokens cannot be stored yet; retrying for up to a minute: \(told.happened): \(told.advice)"
        )
    }

    private func open(_ address: String, _ page: String) throws(CommandFailure) {
        try check(address)
        try check(page)
        guard opensBrowser else {
            console.note("open this address in a browser: \(address)")
            return wait(checking: Self.browserOptions)
        }
        guard let browser = Browser.find(for: page) else { throw .noBrowser(profile) }
        console.note("Opening your browser. If nothing happens, visit: \(address)")
        do throws(SystemFailure) {
            try browser.start(orAdvise: "open the address above, or use --device")
        } catch {
            throw CommandFailure(
                .unavailable, "the browser does not start: \(error.errno.description)",
                CommandFailure.otherWays(profile))
        }
        wait(checking: Self.browserOptions)
    }

    private func tell(_ prompt: WorkerReply.DevicePrompt) throws(CommandFailure) {
        try check(prompt.address)
        guard Self.isShown(prompt.code, atMost: 64) else { throw Self.unfit }
        // Each line stands alone, so that no terminal breaks the code that the user types.
        console.note("to sign in, open \(prompt.address) on any device")
        console.note("and enter the code \(prompt.code)")
        if let address = prompt.completeAddress {
            try check(address)
            console.note("or open \(address)")
        }
        let origin = RequestOrigin(address: prompt.address)
        if !knownOrigins.contains(where: { RequestOrigin(address: $0) == origin }), let origin {
            console.note(
                "the page is at \(origin.text), not at the issuer's origin: continue only if you trust that address"
            )
        }
        // A device sign-in does not return to this machine, so no port can be wrong.
        wait(checking: "--client-id and --scope")
    }

    /// The options that the provider may not accept in a browser sign-in.
    private static let browserOptions = "--client-id, --redirect-uri and --scope"

    /// Waits for the sign-in. A provider that rejects the client or the redirect address shows the mistake
    /// only on its page.
    private func wait(checking options: String) {
        self.options = options
        let time =
            limit >= 120
            ? "\(Int(limit / 60)) minutes" : limit > 1 ? "\(Int(limit.rounded(.up))) seconds" : "a second"
        console.note(
            "waiting for the sign-in, for \(time) at most; if the page shows an error, press "
                + "Ctrl-C and check \(options)")
        if takesPaste {
            console.note(
                "if the browser is on another machine, paste the address of the page that does not load")
        }
        console.progress.show("Waiting for the sign-in …")
    }

    private func check(_ address: String) throws(CommandFailure) {
        guard Self.isFit(address) else { throw Self.unfit }
    }

    /// Whether `address` can be shown to the user or a browser. The address must be a web address with a
    /// host, and encrypted unless it stays on this machine.
    static func isFit(_ address: String) -> Bool {
        isShown(address, atMost: 8_192) && RequestOrigin(address: address)?.keepsSecrets ?? false
    }

    private static func isShown(_ text: String, atMost limit: Int) -> Bool {
        (1...limit).contains(text.utf8.count) && text.utf8.allSatisfy { (0x20...0x7e).contains($0) }
    }

    private static let unfit = CommandFailure(
        .unavailable, "the provider's address or code cannot be shown", "check --issuer")
}

extension CommandFailure {
    /// Returns advice for a sign-in without a browser. The advice contains the whole command when the
    /// profile's name is enough.
    static func otherWays(_ profile: String?) -> String {
        // After a name that needs `--`, the shell command accepts no further option.
        let command = profile.flatMap { $0.hasPrefix("-") ? nil : "\(signingIn($0).dropLast()) --device\"" }
        return "sign in with \(command ?? "--device"), or give --no-browser and open the address yourself"
    }

    /// Returns the failure when there is no browser to start.
    static func noBrowser(_ profile: String?) -> CommandFailure {
        CommandFailure(.unavailable, "no browser can be started here", otherWays(profile))
    }
}
