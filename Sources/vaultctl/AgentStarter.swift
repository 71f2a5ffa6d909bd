import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent

/// The agent's program, which is installed beside this one.
enum AgentStarter {
    /// Returns the path of the program. Throws `unavailable` when the program is missing.
    static func program() throws(CommandFailure) -> FilePath {
        try InstalledProgram.agent.path(orElse: "install vaultctl-agent beside vaultctl")
    }

    /// Advice for a user without a place for an agent.
    static let placeAdvice = "set XDG_RUNTIME_DIR to a directory of yours, mode 0700"

    /// Advice for an agent directory that cannot be entered.
    static var closedAdvice: String {
        guard case .text = ProgramContext.variable("XDG_RUNTIME_DIR") else { return placeAdvice }
        return "XDG_RUNTIME_DIR is another user's or cannot be entered; unset it"
    }

    /// Returns every place where an agent of this user may run. Throws when the places cannot be determined.
    static func places() throws(CommandFailure) -> [AgentEndpoint] {
        do throws(SystemFailure) { return try AgentEndpoints.everywhere() } catch {
            throw CommandFailure(
                error, "the directories where agents run", "check \"ulimit -n\" and the mode of /run/user/UID"
            )
        }
    }

    /// Throws `unavailable` when another user owns the agent's place. Then no agent runs, and none can be
    /// started.
    static func requirePlace() throws(CommandFailure) {
        if let place = AgentEndpoints.ownedByAnotherUser {
            throw CommandFailure(
                .unavailable, "no agent can run in \(place), which belongs to another user", placeAdvice)
        }
        // The agent receives its place as an argument, which must be text.
        guard String(validating: AgentEndpoints.own.directory) == nil else { return }
        throw CommandFailure(
            .unavailable, "no agent can run in a directory whose path is not UTF-8", placeAdvice)
    }

    /// Starts the agent, unless an agent runs already, and waits until the agent accepts clients. Waits for
    /// an agent that is about to end.
    static func start(_ console: Console) throws(CommandFailure) {
        try requirePlace()
        let deadline = Deadline(after: console.deadline?.remaining ?? .seconds(30))
        while true {
            let place = AgentEndpoints.own
            let limit = deadline.remaining
            let isRunning = try calling { () throws(TokenStorageError) in
                try AgentControl.isRunning(at: place, within: limit)
            }
            if isRunning { return }
            let started = try begin(at: place, within: deadline.remaining)
            if started.isReady { return }
            // Another agent may have started first.
            guard started.wait() == ExitStatus.conflict.rawValue, !deadline.hasPassed else {
                throw CommandFailure(
                    .unavailable, "the agent does not start",
                    reason(in: started.errors) ?? "start it with \"vaultctl agent\" to see why")
            }
        }
    }

    private static func begin(
        at place: AgentEndpoint, within timeout: Duration
    ) throws(CommandFailure) -> BackgroundProgram {
        let program = try program()
        var environment = ["PATH=/usr/bin:/bin", "SWIFT_BACKTRACE=enable=no"]
        // The agent needs one more variable: the address of the bus that reports the end of the user's
        // session.
        if case .text(let address) = ProgramContext.variable("DBUS_SYSTEM_BUS_ADDRESS") {
            environment.append("DBUS_SYSTEM_BUS_ADDRESS=\(address)")
        }
        do throws(SystemFailure) {
            return try BackgroundProgram(
                program,
                [
                    "--directory", place.directory.string, "--background", "--ready-fd",
                    String(BackgroundProgram.readyDescriptor),
                ],
                environment: environment, errors: .kept, within: timeout)
        } catch {
            throw CommandFailure(
                error, "the agent", "start it with \"vaultctl agent\" to see why it does not")
        }
    }

    /// Returns the last line of the agent's errors, without the program's name.
    private static func reason(in errors: String) -> String? {
        guard let line = errors.split(separator: "\n").last else { return nil }
        let name = "vaultctl-agent: "
        return String(line.hasPrefix(name) ? line.dropFirst(name.count) : line)
    }
}
