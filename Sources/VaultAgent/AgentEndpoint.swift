public import SystemPackage
package import TokenVault
package import TokenVaultPlatform

/// The place where this user's agent listens: the socket `agent.sock` in a directory that is closed to other
/// users.
public struct AgentEndpoint: Hashable, Sendable {
    /// The directory, mode 0700.
    public var directory: FilePath

    /// Creates the endpoint in `directory`, usually `$XDG_RUNTIME_DIR/tokenvault`. The library reads no
    /// environment, so the program passes the directory.
    public init(directory: FilePath) { self.directory = directory }

    /// The path of the socket.
    public var socket: FilePath { directory.appending(Self.socketName) }

    /// The name of the socket in the directory.
    package static let socketName = "agent.sock"
    /// The backend name in errors of the connection to the agent.
    package static let backend = "agent"
}

extension AgentEndpoint {
    /// The process of the agent that runs here, reachable or not; `nil` if there is none.
    package var holder: Int32? {
        do throws(SocketDirectory.Failure) {
            return try SocketDirectory(directory, creating: false).holder
        } catch {
            return nil
        }
    }

    /// Whether an agent runs here.
    package var isTaken: Bool { holder != nil }
}

extension SocketDirectory.Failure {
    /// Whether no process listens here. Any other failure may hide an agent that runs.
    package var saysNobodyListens: Bool {
        guard case .system(let failure) = self else { return false }
        return failure.errno == .noSuchFileOrDirectory || failure.errno == .connectionRefused
    }

    /// The failure as an error of the connection to the agent.
    package var error: TokenStorageError {
        func error(
            _ code: TokenStorageError.Code, _ reason: TokenStorageError.Reason
        ) -> TokenStorageError {
            TokenStorageError(code, operation: "", backend: AgentEndpoint.backend, reason: reason)
        }
        return switch self {
        case .system(let failure):
            switch failure.errno {
            case Errno.timedOut:
                error(.timedOut, .deadline(.agentConnection))
            case .tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory:
                error(.resourcesExhausted, .tooManyFilesForAgent(.init(failure)))
            case .permissionDenied, Errno.notPermitted:
                // Not a reason to try again.
                error(.insecurePermissions, .agentDirectoryClosed)
            case .fileNameTooLong:
                error(.invalidArgument, .limit(.socketPath))
            default:
                error(.unavailable, .agentMissing(.init(failure)))
            }
        case .foreign(let part, let path):
            error(.insecurePermissions, .agentDirectoryForeign(part.reported, path: path))
        case .occupied:
            error(.alreadyExists, .exists(.agentPlace))
        case .inUse: error(.conflict, .changedMeanwhile(.otherAgent))
        case .held:
            error(.unavailable, .agent(.directoryLocked))
        }
    }
}

extension SocketDirectory.Foreign {
    fileprivate var reported: TokenStorageError.Reason.ForeignAgent {
        switch self {
        case .notADirectory: .notADirectory
        case .ownedByAnotherUser: .ownedByAnotherUser
        case .openToOthers: .openToOthers
        case .answeredByAnotherUser: .answeredByAnotherUser
        case .socketOfAnotherUser: .socketOfAnotherUser
        }
    }
}
