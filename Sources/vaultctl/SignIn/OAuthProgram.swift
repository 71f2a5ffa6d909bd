import OAuthWire
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

/// The program that sends requests to providers, because `vaultctl` itself contains no network code. Each
/// request starts a new process. The process reads the request from its standard input, and ends with it.
struct OAuthProgram: Sendable {
    private let path: FilePath

    /// The reason that no usable answer exists.
    enum WorkerError: Error, Equatable {
        /// The worker could not be started.
        case notStarted(SystemFailure)
        /// The worker ended without an answer, with this exit status.
        case ended(Int32)
        /// The worker answered with something else, or with too much.
        case misunderstood
        /// A signal that is to end this program ended the worker.
        case interrupted
        /// Such a signal came before the request was sent.
        case notAsked
        /// The worker's output could not be read.
        case broken(SystemFailure)
        /// The worker did not answer in time.
        case timedOut
        /// The worker reported a failure.
        case failed(WorkerFailure)
        /// This program itself could not continue.
        case other(CommandFailure)
    }

    /// Returns the program. Throws `unavailable` when the program is not installed, or when there are too few
    /// descriptors or threads.
    static func find() throws(CommandFailure) -> OAuthProgram {
        try requireRoom()
        return OAuthProgram(
            path: try InstalledProgram.oauth.path(
                orElse:
                    "install vaultctl-oauth beside vaultctl: \"make release\" builds it there, \"make install\" installs both"
            ))
    }

    private init(path: FilePath) { self.path = path }

    // The largest number of replies to one request. A sign-in shows one prompt before its result, so more
    // replies are an error.
    private static let mostReplies = 8
    // The largest number of error texts.
    private static let maximumNotes = 1_000

    /// Sends `request` to a new worker and returns the final reply. `show` receives each earlier reply, and
    /// returns the failure to show it. The worker has ended when this function returns or throws
    /// ``WorkerError``.
    ///
    /// An answer that is complete counts even after `deadline`, which may have passed while this program was
    /// stopped.
    ///
    /// With `lines`, the worker of a sign-in gets the lines that the user pastes after the prompt.
    ///
    /// With `interruption`, signals end the worker as that guard defines, even if they came earlier. The last
    /// reply of a sign-in or a revocation still counts then.
    func ask(
        _ request: WorkerRequest, until deadline: Deadline?, interruption: SignalGuard? = nil,
        lines: TerminalLines? = nil, show: (WorkerReply) -> CommandFailure? = { _ in nil }
    ) throws(WorkerError) -> WorkerReply {
        guard let message = try? Secret(encoding: request) else { throw .misunderstood }
        let worker: HelperProgram
        do throws(SystemFailure) {
            worker = try HelperProgram(
                path, [], environment: ["PATH=/usr/bin:/bin", "SWIFT_BACKTRACE=enable=no"], isSpokenTo: true,
                parting: interruption?.parting(request.operation.kind))
        } catch {
            throw error.errno == .interrupted ? .notAsked : .notStarted(error)
        }
        defer { worker.end() }
        var bytes = message.unprotectedBytes() + [UInt8(ascii: "\n")]
        defer { SmallFile.wipe(&bytes) }
        do throws(SystemFailure) { try worker.write(bytes, deadline: deadline) } catch {
            if error.errno == .timedOut { throw WorkerError.timedOut }
            if error.errno == .interrupted { throw WorkerError.notAsked }
            // On another error the worker has ended or is about to end. Its answer, if any, gives the reason.
        }
        // A revocation brings no new tokens, so the consequences that its caller noted stay.
        if request.operation.kind != .revoke { interruption?.note(leaving: SignalGuard.given) }
        defer { lines?.stop() }
        var isReading = false
        var (prompts, notes) = (0, 0)
        while prompts < Self.mostReplies, notes < Self.maximumNotes {
            let reply = try reply(of: worker, until: deadline)
            switch reply {
            case .failed(let failure): throw .failed(failure)
            case .signedIn, .refreshed, .exchanged, .proved, .revoked: return reply
            case let shown:
                switch shown {
                case .errorText: notes += 1
                case .wrongAnswer: break
                default: prompts += 1
                }
                if let failure = show(shown) { throw .other(failure) }
                if case .open = shown, !isReading, let sender = try? worker.sender() {
                    isReading = true
                    lines?.read { sender.send($0) }
                }
            }
        }
        throw .misunderstood
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
