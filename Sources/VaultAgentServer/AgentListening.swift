internal import SystemPackage
package import TokenVault
package import TokenVaultPlatform
package import VaultAgent

/// The agent's socket, and the lock that says that no other agent has it.
package struct AgentListening {
    package let listener: SocketListener
    private let directory: SocketDirectory
    private let lock: any Sendable
    private let isOurs: Bool

    /// Listens at `place`, or at what a service manager passed on. Throws `conflict` when an agent runs there already,
    /// `alreadyExists` when something that is no socket is in its place, `insecurePermissions` when others may look into
    /// the directory or what is there is another user's, and `unavailable` with what the system failed with.
    package init(at place: AgentPlace, inherited: SocketListener? = nil) throws(TokenStorageError) {
        do throws(SocketDirectory.Failure) {
            directory = try SocketDirectory(place.directory, creating: true)
            lock = try directory.lock(AgentPlace.lockName)
            isOurs = inherited == nil
            if let inherited {
                listener = inherited
            } else {
                listener = try directory.listen(at: AgentPlace.socketName)
            }
        } catch {
            throw Self.error(for: error, place)
        }
    }

    private static func error(for failure: SocketDirectory.Failure, _ place: AgentPlace) -> TokenStorageError
    {
        var error = failure.error
        error.operation = "agent"
        if case .system(let failure) = failure {
            // It is not there to be started otherwise.
            error.code = .unavailable
            error.underlying =
                "the directory \(place.directory) cannot be \(failure.call == "mkdir" ? "made" : "used"): "
                + failure.errno.description
            error.advice = "check XDG_RUNTIME_DIR, which has to name a directory of yours, or unset it"
        }
        return error
    }

    /// Removes the socket, so that nobody comes to it any more; before the lock goes. False for one that was passed on,
    /// where the next agent finds those who wait.
    package func remove() -> Bool {
        guard isOurs else { return false }
        directory.remove(AgentPlace.socketName)
        return true
    }
}
