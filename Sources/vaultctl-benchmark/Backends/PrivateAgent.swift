import ProgramSupport
import SystemPackage
import TokenVaultPlatform
import VaultAgent

/// An agent for the benchmark alone. The agent listens in the scratch directory and watches no session. The
/// process that keeps the directory ends the agent.
enum PrivateAgent {
    /// Returns the endpoint where the agent listens.
    static func place(in scratch: FilePath) -> AgentEndpoint {
        AgentEndpoint(directory: scratch.appending("run"))
    }

    /// Starts the agent and waits until the agent accepts clients.
    static func start(_ program: FilePath, in scratch: FilePath) throws(CommandFailure) {
        let started: BackgroundProgram
        do throws(SystemFailure) {
            started = try BackgroundProgram(
                program,
                [
                    "--directory", place(in: scratch).directory.string, "--background", "--ready-fd",
                    String(BackgroundProgram.readyDescriptor),
                ],
                // The agent gets no bus: the system bus would lock the benchmark's vault with the user's
                // session.
                environment: [
                    "PATH=/usr/bin:/bin", "SWIFT_BACKTRACE=enable=no",
                    "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/dev/null",
                ], errors: .kept, within: .seconds(30))
        } catch {
            throw CommandFailure(error, "the agent", "leave it out with --backend")
        }
        guard started.isReady else {
            _ = started.wait()
            throw CommandFailure(
                .unavailable, "the agent does not start",
                "leave it out with --backend, or see why with \"vaultctl agent\"")
        }
    }

    /// Ends the agent, if it runs.
    static func stop(in scratch: FilePath) { _ = try? AgentControl.stop(at: place(in: scratch)) }
}
