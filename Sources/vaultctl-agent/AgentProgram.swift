internal import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent
import VaultAgentServer

/// The agent program: arguments in, status out. Secrets arrive only through its socket.
enum AgentProgram {
    private static let usage = """
        usage: vaultctl-agent [--directory PATH] [--ready-fd NUMBER] [--credential NAME:VAULT]… [--state-dir PATH] \
        [--background]
        """

    /// The number of descriptors that the agent opens for itself and its first clients.
    ///
    /// The Swift runtime and libdispatch end the process when no descriptor is left at the start.
    private static let neededDescriptors = 64

    /// Runs the agent with `arguments` until the agent ends; `nil` stands for arguments that are not UTF-8.
    static func run(_ arguments: [String]?) -> Int32 {
        var place = AgentEndpoints.own
        var ready: Int32?
        var credentials: [CredentialUnlock] = []
        var stateDirectory = UserDirectories.state?.appending("tokenvault")
        var isInBackground = false
        var rest = (arguments ?? ["?"])[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--directory":
                guard let path = rest.popFirst(), !path.isEmpty else { return refuse(usage) }
                place = AgentEndpoint(directory: FilePath(path))
            case "--ready-fd":
                guard let number = rest.popFirst().flatMap({ Int32($0) }), number > 2 else {
                    return refuse(usage)
                }
                ready = number
            case "--credential":
                guard let credential = rest.popFirst().flatMap({ CredentialUnlock($0) }) else {
                    return refuse(usage)
                }
                credentials.append(credential)
            case "--state-dir":
                guard let path = rest.popFirst(), FilePath(path).isAbsolute else { return refuse(usage) }
                stateDirectory = FilePath(path)
            case "--background": isInBackground = true
            case "--help":
                say(usage)
                return 0
            default: return refuse(usage)
            }
        }
        if let ready, !ReadySignal.exists(ready) {
            return refuse(
                "vaultctl-agent: there is no descriptor \(ready): pass the one that --ready-fd names")
        }
        ProcessFacts.allowAllDescriptors()
        guard ProcessFacts.hasRoom(forDescriptors: neededDescriptors) else {
            say(
                "vaultctl-agent: too few descriptors: allow this process \(neededDescriptors) more with \"ulimit -n\""
            )
            return 8
        }
        ProcessFacts.shareHeapWhereLimited()
        // The first timer makes libdispatch open its descriptors, and libdispatch ends the process when none
        // is left. This timer runs now, while descriptors are free, rather than when a client subscribes.
        Task.detached { try? await Task.sleep(for: .nanoseconds(1)) }
        do {
            let inherited = try SocketListener.inherited()
            let listening = try AgentListening(at: place, inherited: inherited)
            ProgramContext.leaveDirectory()
            let signals = try SignalForwarder(SignalForwarder.ending)
            SignalForwarder.admit(SignalForwarder.ending)
            var limits = AgentLimits()
            // An agent with credentials unlocks vaults at its start, and nothing would start the agent again.
            if !credentials.isEmpty { limits.unusedTime = nil }
            let server = try AgentServer(limits: limits)
            // The session watch comes first, so its result is known when the first client connects.
            try server.watchSession { obstacle in
                say(
                    "vaultctl-agent: note: \(obstacle.map { "the vaults do not lock with the session: \($0)" } ?? "the vaults lock with the session")"
                )
            }
            for credential in credentials {
                try credential.perform(server.vaults, stateDirectory: stateDirectory)
            }
            // The parent process no longer reads standard error.
            if isInBackground { StandardStream.error.discard() }
            if let ready { try ReadySignal.send(to: ready) }
            notify(.ready)
            switch try server.run(listening, signals: signals, stopping: { notify(.stopping) }) {
            case .asked: break
            case .displaced:
                say(
                    "vaultctl-agent: note: the socket was removed or replaced, so the agent ended and locked all vaults"
                )
            case .unused: say("vaultctl-agent: note: the agent held no vault and was not used, so it ended")
            }
            return 0
        } catch let error as TokenStorageError where error.isOfAnotherAgent {
            say(
                "vaultctl-agent: another agent already runs in \(place.directory): use it, or end it first: \"vaultctl agent --stop\""
            )
            return 9
        } catch let error as TokenStorageError {
            say("vaultctl-agent: \(error)")
            return error.code == .conflict ? 9 : 8
        } catch let error as SystemFailure {
            say("vaultctl-agent: \(error.call): \(error.errno.description)")
            return 8
        } catch {
            say("vaultctl-agent: \(error)")
            return 1
        }
    }

    private static func notify(_ notice: ServiceManager.Notice) {
        do throws(SystemFailure) {
            try ServiceManager.tell(notice)
        } catch {
            say("vaultctl-agent: note: the service manager cannot be notified: \(error.call): \(error.errno)")
        }
    }

    private static func refuse(_ text: String) -> Int32 {
        say(text)
        return 64
    }

    private static func say(_ line: String) { try? StandardStream.error.write(Array((line + "\n").utf8)) }
}

extension TokenStorageError {
    /// Whether the error says that another agent listens in the same place.
    fileprivate var isOfAnotherAgent: Bool { code == .conflict && backend == AgentEndpoint.backend }
}
