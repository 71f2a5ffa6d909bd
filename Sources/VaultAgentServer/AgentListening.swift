internal import SystemPackage
package import TokenVault
package import TokenVaultPlatform
package import VaultAgent

/// The agent's socket, in a directory that this agent has reserved.
package struct AgentListening {
    package let listener: SocketListener
    private let place: AgentEndpoint
    private let directory: SocketDirectory
    private let identity: FileIdentity?
    private let isOurs: Bool

    /// Listens at `place`, or on a socket that a service manager passed on. Throws `conflict` when an agent
    /// already runs there, and `alreadyExists` when a file other than a socket is in its place. Throws
    /// `insecurePermissions` when the directory is open to other users, or another user owns the file there.
    /// Throws `unavailable` for a passed-on socket at another place, and for a system failure.
    package init(at place: AgentEndpoint, inherited: SocketListener? = nil) throws(TokenStorageError) {
        let isInPlace: Bool
        do throws(SocketDirectory.Failure) {
            directory = try SocketDirectory(place.directory, creating: true)
            try directory.take()
            isOurs = inherited == nil
            if let inherited {
                listener = inherited
            } else {
                listener = try directory.listen(at: AgentEndpoint.socketName)
            }
            identity = directory.identity(of: AgentEndpoint.socketName)
            isInPlace = inherited == nil || identity != nil && inherited?.identity == identity
        } catch {
            throw Self.error(for: error, place)
        }
        guard isInPlace else {
            throw TokenStorageError(
                .unavailable, operation: "agent", backend: AgentEndpoint.backend,
                reason: .agentSocketElsewhere(expected: place.socket.string))
        }
        self.place = place
    }

    private static func error(for failure: SocketDirectory.Failure, _ place: AgentEndpoint)
        -> TokenStorageError
    {
        var error = failure.error
        error.operation = "agent"
        if case .system(let failure) = failure {
            // At the start of an agent, every system failure means that there is no agent.
            error.code = .unavailable
            error.reason = .agentDirectoryUnusable(path: place.directory.string, .init(failure))
        }
        return error
    }

    /// Returns a watch that reports when to check the socket's place; `nil` while the system has no resources
    /// for a watch.
    func watch() -> SocketDirectoryWatch? { try? SocketDirectoryWatch(directory) }

    /// Whether clients can find the socket. Otherwise clients cannot lock the agent's vaults.
    var isInPlace: Bool {
        directory.isAt(place.directory) && directory.identity(of: AgentEndpoint.socketName) == identity
    }

    /// Hides the socket from clients before the agent ends. If a client has just connected, puts the socket
    /// back and returns the client. A socket that a service manager passed on stays in place: its clients
    /// wait for the next agent.
    func withdraw() -> UnixSocket? {
        guard isOurs, isInPlace else { return listener.acceptNow() }
        directory.rename(AgentEndpoint.socketName, to: Self.withdrawnName)
        let late = listener.acceptNow()
        if late != nil { directory.rename(Self.withdrawnName, to: AgentEndpoint.socketName) }
        return late
    }

    private static let withdrawnName = AgentEndpoint.socketName + ".ending"

    /// Removes the socket before another agent can use the directory. Returns false for a passed-on socket:
    /// its clients wait for the next agent.
    package func remove() -> Bool {
        guard isOurs else { return false }
        for name in [AgentEndpoint.socketName, Self.withdrawnName]
        where directory.identity(of: name) == identity {
            directory.remove(name)
        }
        return true
    }
}
