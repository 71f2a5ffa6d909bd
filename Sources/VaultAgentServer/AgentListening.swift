internal import SystemPackage
package import TokenVault
package import TokenVaultPlatform
package import VaultAgent

/// The agent's socket, in a directory that no other agent has meanwhile.
package struct AgentListening {
    package let listener: SocketListener
    private let place: AgentEndpoint
    private let directory: SocketDirectory
    private let identity: FileIdentity?
    private let isOurs: Bool

    /// Listens at `place`, or at what a service manager passed on. Throws `conflict` when an agent runs there already,
    /// `alreadyExists` when something that is no socket is in its place, `insecurePermissions` when others may look into
    /// the directory, or what is there is another user's, and `unavailable` when the socket that was passed on is not the
    /// one there, and with what the system failed with.
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
            // It is not there to be started otherwise.
            error.code = .unavailable
            error.reason = .agentDirectoryUnusable(path: place.directory.string, .init(failure))
        }
        return error
    }

    /// Tells when to look whether it is still where clients look; `nil` while the system has no room for a watch.
    func watch() -> SocketDirectoryWatch? { try? SocketDirectoryWatch(directory) }

    /// Whether clients find it. When they do not, nobody can lock what the agent holds.
    var isInPlace: Bool {
        directory.isAt(place.directory) && directory.identity(of: AgentEndpoint.socketName) == identity
    }

    /// Takes the socket away from where clients look, before the agent ends. Returns a client that came just before, with the
    /// socket back in its place. A socket that a service manager passed on stays there: its clients wait for the next agent.
    func withdraw() -> UnixSocket? {
        guard isOurs, isInPlace else { return listener.acceptNow() }
        directory.rename(AgentEndpoint.socketName, to: Self.withdrawnName)
        let late = listener.acceptNow()
        if late != nil { directory.rename(Self.withdrawnName, to: AgentEndpoint.socketName) }
        return late
    }

    private static let withdrawnName = AgentEndpoint.socketName + ".ending"

    /// Removes the socket, so that nobody comes to it any more; before the directory is another agent's. False for one that
    /// was passed on, where the next agent finds those who wait.
    package func remove() -> Bool {
        guard isOurs else { return false }
        for name in [AgentEndpoint.socketName, Self.withdrawnName]
        where directory.identity(of: name) == identity {
            directory.remove(name)
        }
        return true
    }
}
