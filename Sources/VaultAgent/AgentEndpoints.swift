package import SystemPackage
internal import TokenVault
package import TokenVaultPlatform

/// Where programs of this package look for the agent. Only programs ask: the library reads no environment.
package enum AgentEndpoints {
    /// Where the agent of this user runs; where none does, where one begins: `tokenvault` in `$XDG_RUNTIME_DIR`, or in
    /// `/run/user/UID` when that is not set and the directory is this user's alone; without either `tokenvault-UID` in
    /// `/tmp`, which has to be this user's alone as well.
    package static var own: AgentEndpoint {
        let places = all
        return places.dropFirst().first { !places[0].isTaken && $0.isTaken } ?? places[0]
    }

    /// Where an agent of this user may run: the place of those that begin now, and those where one began while there was no
    /// other place yet, or without `$XDG_RUNTIME_DIR`. A directory that this variable names stands alone where it is not one
    /// below `/run/user`: the programs of a snap have one there, and so has a shell that `su` started.
    package static var all: [AgentEndpoint] {
        let usual = UserDirectories.usualRuntime
        let named = UserDirectories.runtime
        let first = AgentEndpoint(directory: named?.appending("tokenvault") ?? shared)
        guard named.map(isBelowUsualOnes) ?? true else { return [first] }
        let others = [usual.appending("tokenvault"), shared].filter {
            $0 != first.directory && isThisUsers($0)
        }
        return [first] + others.map { AgentEndpoint(directory: $0) }
    }

    /// All of these, and the places of the programs of snaps. A lock must reach every agent that holds keys.
    /// Throws what keeps the directory of the login from being looked into.
    package static func everywhere() throws(SystemFailure) -> [AgentEndpoint] {
        let all = all
        let usual = UserDirectories.usualRuntime
        guard UserDirectories.runtime.map(isBelowUsualOnes) ?? true, isThisUsers(usual) else { return all }
        let names: [String]
        do throws(SystemFailure) { names = try PosixDirectory(usual).names() } catch {
            if error.errno == .noSuchFileOrDirectory { return all }
            throw error
        }
        let snaps = names.filter { $0.hasPrefix("snap.") }.sorted()
            .map { usual.appending($0).appending("tokenvault") }
            .filter { path in isThisUsers(path) && !all.contains { $0.directory == path } }
        return all + snaps.map { AgentEndpoint(directory: $0) }
    }

    private static func isBelowUsualOnes(_ path: FilePath) -> Bool {
        let users = UserDirectories.usualRuntime.removingLastComponent()
        if path.starts(with: users) { return true }
        // `/var/run` is a link to `/run`.
        guard let real = try? PosixDirectory(path).absolutePath else { return false }
        return real.starts(with: (try? PosixDirectory(users).absolutePath) ?? users)
    }

    /// Whether this user owns what is there, whatever its mode. A wrong mode is an error of the connection, not an absence.
    private static func isThisUsers(_ path: FilePath) -> Bool {
        (try? FileAttributes(at: path, followingLinks: false))?.owner == ProcessFacts.user
    }

    /// A name that anybody can guess, in a directory in which anybody can take it first.
    private static var shared: FilePath { FilePath("/tmp/tokenvault-\(ProcessFacts.user)") }

    /// The agent's directory when somebody else has taken its name first: no agent of this user is there, and none can be.
    ///
    /// Only of the name in `/tmp`. Nobody else can take that from an agent that has it: who made it owns it, and `/tmp` lets
    /// no other user rename it or remove it. A place that was named is not passed by, whoever has it.
    package static var ownedByAnotherUser: FilePath? {
        guard UserDirectories.runtime == nil, SocketDirectory.isAnothers(shared) else { return nil }
        return shared
    }
}
