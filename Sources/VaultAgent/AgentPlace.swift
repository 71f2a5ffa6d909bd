public import SystemPackage
package import TokenVault
package import TokenVaultPlatform

/// Where the agent of this user listens: the socket `agent.sock` in a directory that nobody else may look into.
public struct AgentPlace: Hashable, Sendable {
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
    /// What is told when the system keeps this user out of the agent's directory.
    package static let closedDirectory = "the agent's directory cannot be entered"
}

extension AgentPlace {
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
            _ code: TokenStorageError.Code, _ underlying: String, _ advice: String
        ) -> TokenStorageError {
            TokenStorageError(
                code, operation: "", backend: AgentPlace.backend, underlying: underlying, advice: advice)
        }
        return switch self {
        case .system(let failure):
            switch failure.errno {
            case Errno.timedOut:
                error(.timedOut, "the agent does not take the connection", "try again, or restart the agent")
            case .tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory:
                error(
                    .resourcesExhausted, "\(failure.call): \(failure.errno.description)",
                    "close other files or programs")
            case .permissionDenied, Errno.notPermitted:
                // No reason to ask again.
                error(
                    .insecurePermissions, AgentPlace.closedDirectory,
                    "name a directory of this user's, mode 0700")
            case .fileNameTooLong:
                error(
                    .invalidArgument, "the path of the agent's directory is too long",
                    "name a shorter one: XDG_RUNTIME_DIR")
            default:
                error(
                    .unavailable, "no agent: \(failure.call): \(failure.errno.description)",
                    "start it with \"vaultctl unlock\"")
            }
        case .foreign(let what):
            error(.insecurePermissions, what, "make it this user's alone, mode 0700, or remove it")
        case .occupied:
            error(
                .alreadyExists, "something that is no socket of the agent is in its place",
                "look at what it is, and remove it")
        case .inUse: error(.conflict, "another agent runs", "use that one, or end it first")
        case .held:
            error(
                .unavailable, "another program keeps the agent's directory locked",
                "end that program; fuser(1) names it when it is given the directory")
        }
    }
}
