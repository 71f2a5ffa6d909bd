package import SystemPackage
internal import TokenVault
package import TokenVaultPlatform

/// The places where programs of this package look for the agent. Only programs use these: the library reads
/// no environment.
package enum AgentEndpoints {
    /// The place of this user's agent or, if none runs, of the next agent: `tokenvault` in
    /// `$XDG_RUNTIME_DIR`. If that is not set, `/run/user/UID` is used, provided that it belongs to this user
    /// alone. Without either, the place is `tokenvault-UID` in `/tmp`, which also has to belong to this user
    /// alone.
    package static var own: AgentEndpoint {
        let places = all
        return places.dropFirst().first { !places[0].isTaken && $0.isTaken } ?? places[0]
    }

    /// All places where an agent of this user may run: the place of new agents, and the places for a session
    /// without `$XDG_RUNTIME_DIR`. If that variable names a directory outside `/run/user`, its place is the
    /// only one. The programs of a snap have such a directory, and so has a shell started by `su`.
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

    /// Returns all of these places and those of snap programs. A lock must reach every agent that holds keys.
    /// Throws the failure to read the runtime directory.
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

    /// Whether this user owns the file at `path`, regardless of its mode. A wrong mode is an error of the
    /// connection, not an absence.
    private static func isThisUsers(_ path: FilePath) -> Bool {
        (try? FileAttributes(at: path, followingLinks: false))?.owner == ProcessFacts.user
    }

    /// A guessable name, in a directory where every user can create it first.
    private static var shared: FilePath { FilePath("/tmp/tokenvault-\(ProcessFacts.user)") }

    /// The agent's directory in `/tmp` when another user has taken its name: no agent of this user can be
    /// there.
    ///
    /// Another user cannot take the name from a running agent: the agent owns the directory, and `/tmp` lets
    /// no other user rename or remove it. A place that is set explicitly is never skipped, even if another
    /// user owns it.
    package static var ownedByAnotherUser: FilePath? {
        guard UserDirectories.runtime == nil, SocketDirectory.isAnothers(shared) else { return nil }
        return shared
    }
}
