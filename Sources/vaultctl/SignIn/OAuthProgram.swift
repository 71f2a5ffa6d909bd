import OAuthWire
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

/// The program that sends requests to providers, started anew for each: this one has no network in it. It gets what it needs
/// on its standard input, and ends with it.
struct OAuthProgram: Sendable {
    private let path: FilePath

    /// Why there is no answer that can be used.
    enum WorkerError: Error, Equatable {
        /// It could not be started.
        case notStarted(SystemFailure)
        /// It ended without an answer, with this exit status.
        case ended(Int32)
        /// It answered with something else, or with too much.
        case misunderstood
        /// A signal that is to end this program ended it.
        case interrupted
        /// Such a signal came before it was asked.
        case notAsked
        /// It could not be listened to.
        case broken(SystemFailure)
        /// It did not answer in time.
        case timedOut
        /// It answered that it did not succeed.
        case failed(WorkerFailure)
        /// This program itself could not go on.
        case other(CommandFailure)
    }

    /// The program. Throws `unavailable` when it is not installed, or there are too few descriptors for it and what it is
    /// asked with.
    static func find() throws(CommandFailure) -> OAuthProgram {
        try Tasks<Never>.requireRoom()
        return OAuthProgram(
            path: try InstalledProgram.oauth.path(
                orElse:
                    "install vaultctl-oauth beside vaultctl; \"make install\" does, or \"swift build --traits OAuth\" "
                    + "builds it"))
    }

    private init(path: FilePath) { self.path = path }

    // One of what a sign-in shows, and what ends it: more is no conversation.
    private static let mostReplies = 8

    /// What it answers to `request` at the end; `show` is called with what it says before, and gives what keeps it from being
    /// shown. What it has said is taken also when `deadline` has passed, as it may have while this program was stopped. Throws
    /// ``WorkerError``. It has ended by then, however this ends: with `interruption` a signal is that one's, whether it came before
    /// or comes now, and the last words of a sign-in or a revocation are taken.
    func ask(
        _ request: WorkerRequest, until deadline: Deadline?, interruption: SignalGuard? = nil,
        show: (WorkerReply) -> CommandFailure? = { _ in nil }
    ) throws(WorkerError) -> WorkerReply {
        guard let message = try? Secret(encoding: request) else { throw .misunderstood }
        let worker = try start(request.operation, interruption)
        defer { worker.end() }
        var bytes = message.unprotectedBytes() + [UInt8(ascii: "\n")]
        defer { SmallFile.wipe(&bytes) }
        do throws(SystemFailure) { try worker.write(bytes, deadline: deadline) } catch {
            if error.errno == .timedOut { throw WorkerError.timedOut }
            if error.errno == .interrupted { throw WorkerError.notAsked }
            // Else it has ended, or is about to: its answer, if any, says why.
        }
        // A revocation brings nothing: what it leaves is what it is for.
        if request.operation != .revoke { interruption?.note(leaving: SignalGuard.given) }
        for _ in 0..<Self.mostReplies {
            switch try reply(of: worker, until: deadline) {
            case .failed(let failure): throw .failed(failure)
            case .signedIn(let signedIn): return .signedIn(signedIn)
            case .refreshed(let refreshed): return .refreshed(refreshed)
            case .revoked: return .revoked
            case let shown: if let failure = show(shown) { throw .other(failure) }
            }
        }
        throw .misunderstood
    }

    private func start(
        _ operation: WorkerRequest.Operation, _ interruption: SignalGuard?
    ) throws(WorkerError) -> HelperProgram {
        do throws(SystemFailure) {
            return try HelperProgram(
                path, [], environment: ["PATH=/usr/bin:/bin", "SWIFT_BACKTRACE=enable=no"], isSpokenTo: true,
                parting: interruption?.parting(operation))
        } catch {
            if error.errno == .interrupted { throw .notAsked }
            throw .notStarted(error)
        }
    }

    private func reply(of worker: HelperProgram, until deadline: Deadline?) throws(WorkerError) -> WorkerReply
    {
        let status: Int32
        do throws(SystemFailure) {
            if var line = try worker.readLine(
                limit: WorkerRequest.longestLine, deadline: deadline, evenIfLate: true)
            {
                defer { SmallFile.wipe(&line) }
                if let reply = try? Secret(line).decode(WorkerReply.self) { return reply }
                throw SystemFailure(.protocolError, "read")
            }
            status = try worker.finish(deadline: deadline)
        } catch {
            if error.errno == .timedOut { throw WorkerError.timedOut }
            if error.errno == .interrupted { throw WorkerError.interrupted }
            let isTalk = error.errno == .protocolError || error.errno == .fileTooLarge
            throw isTalk ? WorkerError.misunderstood : WorkerError.broken(error)
        }
        throw .ended(status)
    }
}
