import ProgramSupport
import SystemPackage
import TokenVaultPlatform
import VaultAgent

/// An agent of our own: it listens in the scratch directory, knows no session, and is ended by who keeps that directory.
enum PrivateAgent {
    /// Where it listens.
    static func place(in scratch: FilePath) -> AgentEndpoint {
        AgentEndpoint(directory: scratch.appending("run"))
    }

    /// Starts it and waits until it takes clients.
    static func start(_ program: FilePath, in scratch: FilePath) throws(CommandFailure) {
        let started: BackgroundProgram
        do throws(SystemFailure) {
            started = try BackgroundProgram(
                program,
                [
                    "--directory", place(in: scratch).directory.string, "--background", "--ready-fd",
                    String(BackgroundProgram.readyDescriptor),
                ],
                // No bus: that of the system would lock its vault with the person's session.
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

    /// Ends it, if it runs.
    static func stop(in scratch: FilePath) { _ = try? AgentControl.stop(at: place(in: scratch)) }
}
