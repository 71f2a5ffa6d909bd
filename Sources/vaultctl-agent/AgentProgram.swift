import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent
import VaultAgentServer

/// The program: arguments in, status out. It takes no secret but through its socket.
enum AgentProgram {
    private static let usage = """
        usage: vaultctl-agent [--directory PATH] [--ready-fd NUMBER] [--credential NAME:VAULT]… [--state-dir PATH] \
        [--background]
        """

    /// What the agent opens for itself and its first clients. What it is made of ends the process when there is none left for
    /// it to begin with.
    private static let neededDescriptors = 64

    /// More than it begins with: those that were tried may not have ended when the first is begun.
    private static let neededThreads = 16

    /// Runs the agent that `arguments` ask for to its end; `nil` stands for arguments that are not UTF-8.
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
        guard ProcessFacts.hasRoom(forThreads: neededThreads) else {
            say(
                "vaultctl-agent: no room for threads: allow this process more of them, and of memory, with \"ulimit\""
            )
            return 8
        }
        // The first timer makes libdispatch open what it needs, and end the process when there is no descriptor left: now,
        // while there are, and not when a client subscribes.
        Task.detached { try? await Task.sleep(for: .nanoseconds(1)) }
        do {
            let inherited = try SocketListener.inherited()
            let listening = try AgentListening(at: place, inherited: inherited)
            ProgramContext.leaveDirectory()
            let signals = try SignalForwarder(SignalForwarder.ending)
            SignalForwarder.admit(SignalForwarder.ending)
            var limits = AgentLimits()
            // An agent with credentials unlocks vaults when it starts, and nothing would start it again.
            if !credentials.isEmpty { limits.unusedTime = nil }
            let server = try AgentServer(limits: limits)
            // First: what this learns of the session is known when the first client comes.
            try server.watchSession { obstacle in
                say(
                    "vaultctl-agent: note: \(obstacle.map { "no lock with the session: \($0)" } ?? "locks with the session")"
                )
            }
            for credential in credentials {
                try credential.perform(server.vaults, stateDirectory: stateDirectory)
            }
            // Who started it listens no longer.
            if isInBackground { StandardStream.error.discard() }
            if let ready { try ReadySignal.send(to: ready) }
            notify(.ready)
            switch try server.run(listening, signals: signals, stopping: { notify(.stopping) }) {
            case .asked: break
            case .displaced:
                say(
                    "vaultctl-agent: note: its socket was removed or replaced, so it ended, and all is locked"
                )
            case .unused: say("vaultctl-agent: note: it held nothing and was not used, so it ended")
            }
            return 0
        } catch let error as TokenStorageError where error.isOfAnotherAgent {
            say(
                "vaultctl-agent: another agent runs already, in \(place.directory): use it, or end it first: \"vaultctl agent --stop\""
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
            say("vaultctl-agent: note: the service manager does not hear: \(error.call): \(error.errno)")
        }
    }

    private static func refuse(_ text: String) -> Int32 {
        say(text)
        return 64
    }

    private static func say(_ line: String) { try? StandardStream.error.write(Array((line + "\n").utf8)) }
}

extension TokenStorageError {
    /// Whether it says that an agent listens in the same place.
    fileprivate var isOfAnotherAgent: Bool { code == .conflict && backend == AgentEndpoint.backend }
}
