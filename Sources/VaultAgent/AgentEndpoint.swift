public import SystemPackage
package import TokenVault
package import TokenVaultPlatform

/// Where the agent of this user listens: the socket `agent.sock` in a directory that nobody else may look into.
public struct AgentEndpoint: Hashable, Sendable {
    /// The directory, 0700.
    public var directory: FilePath

    /// The place in `directory`, usually `$XDG_RUNTIME_DIR/tokenvault`. The library reads no environment: a program
    /// says where.
    public init(directory: FilePath) { self.directory = directory }

    /// The socket's path.
    public var socket: FilePath { directory.appending(Self.socketName) }

    /// The socket's name in the directory.
    package static let socketName = "agent.sock"
    /// How errors of the way to the agent name their backend.
    package static let backend = "agent"
}

extension AgentEndpoint {
    /// The process of the agent that runs there, whether it can be reached or not.
    package var holder: Int32? {
        do throws(SocketDirectory.Failure) {
            return try SocketDirectory(directory, creating: false).holder
        } catch {
            return nil
        }
    }

    /// Whether an agent runs there.
    package var isTaken: Bool { holder != nil }
}

extension SocketDirectory.Failure {
    /// Whether nobody listens there: anything else may keep an agent from being reached.
    package var saysNobodyListens: Bool {
        guard case .system(let failure) = self else { return false }
        return failure.errno == .noSuchFileOrDirectory || failure.errno == .connectionRefused
    }

    /// The failure as an error of the way to the agent.
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
                // No reason to ask again.
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
