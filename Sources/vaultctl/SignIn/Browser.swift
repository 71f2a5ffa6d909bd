import SystemPackage
import TokenVaultPlatform

/// The person's browser.
struct Browser: Equatable {
    let program: FilePath
    let arguments: [String]

    /// What shows `address`: the first of `BROWSER` that is there (names divided by colons, with arguments, `%s` for the
    /// address), else `xdg-open` where there is a `DISPLAY` or `WAYLAND_DISPLAY`. `nil` when nothing can.
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

    /// Starts it, with the person's environment, and calls `failed` on another thread when it says that it could not.
    func start(_ failed: @escaping @Sendable () -> Void) throws(SystemFailure) {
        let started = try DetachedProgram(program, arguments, environment: ProgramContext.environment)
        WorkerThread(name: "browser").run { if started.wait() != 0 { failed() } }
    }
}
