import ProgramSupport
import SystemPackage
import TokenVaultPlatform

/// A program that belongs to this one and is installed with it.
struct InstalledProgram {
    /// Its file's name.
    let name: String
    /// What it is, for people.
    let title: String

    /// What holds unlocked vaults.
    static let agent = InstalledProgram(name: "vaultctl-agent", title: "the agent's program")
    /// What sends requests to the providers that people sign in with.
    static let oauth = InstalledProgram(name: "vaultctl-oauth", title: "the program that signs in")
    /// What measures the backends.
    static let benchmark = InstalledProgram(name: "vaultctl-benchmark", title: "the program that measures")

    /// Where it is: beside this program, else in `../libexec/tokenvault` from there. Throws `unavailable` when it is not there,
    /// having said `advice`.
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
