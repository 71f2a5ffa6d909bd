import OAuthWire
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

/// What a person is shown while they sign in.
final class SignInConversation {
    let console: Console
    /// The profile whose name alone signs in; `nil` where the line has to say more.
    let profile: String?
    /// Whether the browser is started, rather than only told of.
    let opensBrowser: Bool
    /// For how long the person is waited for at most, in seconds.
    let limit: Double
    /// What of the command line to look at when the page shows a mistake; `nil` while nothing was shown.
    private(set) var options: String?

    init(console: Console, profile: String?, opensBrowser: Bool, limit: Double) {
        self.console = console
        self.profile = profile
        self.opensBrowser = opensBrowser
        self.limit = limit
    }

    /// Shows what `reply` says. What keeps it from being shown.
    func show(_ reply: WorkerReply) -> CommandFailure? {
        do throws(CommandFailure) {
            switch reply {
            case .open(let address): try open(address)
            case .device(let prompt): try tell(prompt)
            case .signedIn, .refreshed, .revoked, .failed: break
            }
            return nil
        } catch {
            return error
        }
    }

    private func open(_ address: String) throws(CommandFailure) {
        try check(address)
        guard opensBrowser else {
            console.note("open this address in a browser on this machine: \(address)")
            return wait(checking: Self.browserOptions)
        }
        guard let browser = Browser.find(for: address) else { throw .noBrowser(profile) }
        console.note("a browser shows this address; if it does not, open it there yourself: \(address)")
        do throws(SystemFailure) {
            try browser.start {
                // On another thread, so past the console, whose progress a terminal shows without the end of a line.
                let end = StandardStream.error.isTerminal ? "\n" : ""
                let line =
                    end
                    + "vaultctl: note: the browser did not start: open the address above, or use --device\n"
                try? StandardStream.error.write(Array(line.utf8))
            }
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
        // Each on a line of its own, that no terminal breaks the code, which a person types.
        console.note("to sign in, open \(prompt.address) on any device")
        console.note("and enter the code \(prompt.code)")
        if let address = prompt.completeAddress {
            try check(address)
            console.note("or open \(address)")
        }
        // There is no way back to this machine, and so no port of it.
        wait(checking: "--client-id and --scope")
    }

    /// What of the command line a provider may not know, whose page a browser comes back from.
    private static let browserOptions = "--client-id, --redirect-port and --scope"

    /// A provider that does not know the client, or the way back, tells the person and nobody else.
    private func wait(checking options: String) {
        self.options = options
        let time =
            limit >= 120
            ? "\(Int(limit / 60)) minutes" : limit > 1 ? "\(Int(limit.rounded(.up))) seconds" : "a second"
        console.note(
            "waiting for you to sign in there, for \(time) at most; if the page shows a mistake instead, end this with "
                + "Ctrl-C and check \(options)")
        console.progress.show("Waiting for you to sign in there …")
    }

    private func check(_ address: String) throws(CommandFailure) {
        guard Self.isFit(address) else { throw Self.unfit }
    }

    /// Whether `address` is one that a person, or their browser, can be shown: of the web, with a host, and on its way to
    /// another machine encrypted.
    static func isFit(_ address: String) -> Bool {
        isShown(address, atMost: 8_192) && RequestOrigin(address: address)?.keepsSecrets ?? false
    }

    private static func isShown(_ text: String, atMost limit: Int) -> Bool {
        (1...limit).contains(text.utf8.count) && text.utf8.allSatisfy { (0x20...0x7e).contains($0) }
    }

    private static let unfit = CommandFailure(
        .unavailable, "what the provider wants shown is not fit for that", "check --issuer")
}

extension CommandFailure {
    /// How to sign in where no browser can be started: with the whole command, where the name of a profile is enough for it.
    static func otherWays(_ profile: String?) -> String {
        // Behind a name that needs "--" before it, nothing is an option any more.
        let command = profile.flatMap { $0.hasPrefix("-") ? nil : "\(signingIn($0).dropLast()) --device\"" }
        return "sign in with \(command ?? "--device"), or give --no-browser and open the address yourself"
    }

    /// There is no browser to start.
    static func noBrowser(_ profile: String?) -> CommandFailure {
        CommandFailure(.unavailable, "no browser can be started here", otherWays(profile))
    }
}
