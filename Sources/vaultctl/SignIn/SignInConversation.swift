import OAuthWire
import SystemPackage
import TokenVault
import TokenVaultPlatform

/// What a person is shown while they sign in.
struct SignInConversation {
    let console: Console
    /// Whether the browser is started, rather than only told of.
    let opensBrowser: Bool

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
            return wait()
        }
        guard let browser = Browser.find(for: address) else { throw .noBrowser }
        console.note("a browser shows this address; if it does not, open it there yourself: \(address)")
        do throws(SystemFailure) {
            try browser.start {
                // On another thread, so past the console.
                let line =
                    "\nvaultctl: note: the browser did not start: open the address above, or use --device\n"
                try? StandardStream.error.write(Array(line.utf8))
            }
        } catch {
            throw CommandFailure(
                .unavailable, "the browser does not start: \(error.errno.description)",
                CommandFailure.otherWays)
        }
        wait()
    }

    private func tell(_ prompt: WorkerReply.DevicePrompt) throws(CommandFailure) {
        try check(prompt.address)
        guard Self.isShown(prompt.code, atMost: 64) else { throw Self.unfit }
        console.note("to sign in, open \(prompt.address) on any device and enter the code \(prompt.code)")
        if let address = prompt.completeAddress {
            try check(address)
            console.note("or open \(address)")
        }
        wait()
    }

    private func wait() { console.progress.show("Waiting for you to sign in there …") }

    private func check(_ address: String) throws(CommandFailure) {
        guard Self.isShown(address, atMost: 8_192),
            address.hasPrefix("https://") || address.hasPrefix("http://127.0.0.1")
                || address.hasPrefix("http://localhost") || address.hasPrefix("http://[::1]")
        else { throw Self.unfit }
    }

    private static func isShown(_ text: String, atMost limit: Int) -> Bool {
        (1...limit).contains(text.utf8.count) && text.utf8.allSatisfy { (0x20...0x7e).contains($0) }
    }

    private static let unfit = CommandFailure(
        .unavailable, "what the provider wants shown is not fit for that", "check --issuer")
}

extension CommandFailure {
    static let otherWays =
        "sign in with --device, or give --no-browser and open the address yourself"
    /// There is no browser to start.
    static let noBrowser = CommandFailure(.unavailable, "no browser can be started here", otherWays)
}
