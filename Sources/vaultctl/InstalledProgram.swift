import ProgramSupport
import SystemPackage
import TokenVaultPlatform

/// A program that is installed with this one.
struct InstalledProgram {
    /// The name of the file.
    let name: String
    /// A readable name for messages.
    let title: String

    /// The agent, which holds unlocked vaults.
    static let agent = InstalledProgram(name: "vaultctl-agent", title: "the agent's program")
    /// The program that sends requests to the providers.
    static let oauth = InstalledProgram(name: "vaultctl-oauth", title: "the program that signs in")
    /// The program that measures the backends.
    static let benchmark = InstalledProgram(name: "vaultctl-benchmark", title: "the program that measures")

    /// Returns the path: beside this program, else in `../libexec/tokenvault` from there. Throws
    /// `unavailable` with `advice` when the program is missing.
    func path(orElse advice: String) throws(CommandFailure) -> FilePath {
        guard let own = ProgramContext.executable else {
            throw CommandFailure(.unavailable, "\(title) was not found", "mount /proc")
        }
        let directory = own.parent
        let places = [
            directory.appending(name),
            directory.parent.appending("libexec").appending("tokenvault").appending(name),
        ]
        guard let path = places.first(where: { (try? SmallFile.exists($0)) == true }) else {
            throw CommandFailure(.unavailable, "\(title) was not found", advice)
        }
        return path
    }
}
