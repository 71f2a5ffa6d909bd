internal import ProgramSupport
import SystemPackage
import TokenVaultPlatform

/// The user's browser.
struct Browser: Equatable {
    let program: FilePath
    let arguments: [String]

    /// Returns the program that shows `address`; `nil` when there is none.
    ///
    /// The first program of `BROWSER` that exists is used. `BROWSER` contains names separated by colons, with
    /// arguments, and `%s` for the address. Without `BROWSER`, `xdg-open` is used if `DISPLAY` or
    /// `WAYLAND_DISPLAY` is set.
    static func find(for address: String) -> Browser? {
        if let named = ProcessFacts.environment("BROWSER") {
            return named.split(separator: ":").lazy.compactMap { browser($0, for: address) }.first
        }
        guard ["DISPLAY", "WAYLAND_DISPLAY"].contains(where: { ProcessFacts.environment($0) != nil })
        else { return nil }
        return browser("xdg-open", for: address)
    }

    private static func browser(_ words: Substring, for address: String) -> Browser? {
        let words = words.split(separator: " ").map(String.init)
        guard let name = words.first, let program = HelperProgram.find(name),
            (try? SmallFile.exists(program)) == true
        else { return nil }
        var arguments = words.dropFirst().map { $0 == "%s" ? address : $0 }
        if !words.contains("%s") { arguments.append(address) }
        return Browser(program: program, arguments: arguments)
    }

    /// Starts the browser, and prints `advice` when it reports a failure. Throws system errors.
    func start(orAdvise advice: String) throws(SystemFailure) {
        try start {
            // The callback runs on another thread, so the line does not go through the console. The progress on a
            // terminal has no line end.
            let end = StandardStream.error.isTerminal ? "\n" : ""
            let line = "\(end)vaultctl: note: the browser did not start: \(advice)\n"
            try? StandardStream.error.write(Array(line.utf8))
        }
    }

    /// Starts the browser with the user's environment. Calls `failed` on another thread when the browser
    /// reports a failure.
    private func start(_ failed: @escaping @Sendable () -> Void) throws(SystemFailure) {
        let started = try DetachedProgram(program, arguments, environment: ProgramContext.environment)
        WorkerThread(name: "browser").run { if started.wait() != 0 { failed() } }
    }
}
