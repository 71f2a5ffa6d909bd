#if OAuth
import OAuthWire
import TokenVault
import TokenVaultAuth
import TokenVaultOAuth
import TokenVaultPlatform

/// Reads one request, does what it says, says how that went. It opens no vault, and ends when nobody listens any more.
enum WorkerProgram {
    /// The exit status: 0 after whatever answer, 64 when it was started by somebody else than `vaultctl`.
    static func run() async -> Int32 {
        guard ProgramContext.arguments() == [], !StandardStream.input.isTerminal else {
            return refuse("started by hand", 64)
        }
        guard let request = readRequest() else { return refuse("no request came", 64) }
        guard request.version == WorkerRequest.currentVersion else {
            say(.failed(WorkerFailure(.misunderstood, "the version")))
            return 0
        }
        let caller = ParentProcess(of: request.operation)
        let signals = caller.heedSignals()
        defer { signals?.stop() }
        let reply = await answer(to: request, of: caller)
        // Nobody would have what the provider gave.
        if case .signedIn(let signedIn) = reply, caller.isGone || !say(reply) {
            say(.failed(await revoke(signedIn, of: request)))
        } else {
            say(reply)
        }
        return 0
    }

    /// Has what came of a sign-in revoked. What that leaves.
    private static func revoke(
        _ signedIn: WorkerReply.SignedIn, of request: WorkerRequest
    ) async -> WorkerFailure {
        var request = request
        request.operation = .revoke
        request.metadata = signedIn.metadata
        request.authentication = signedIn.authentication
        request.accessToken = signedIn.tokens.accessToken
        request.refreshToken = signedIn.tokens.refreshToken
        var failure = WorkerFailure(.cancelled)
        if await WorkerJob(request, within: .seconds(5)).reply() != .revoked { failure.leavesTokens = true }
        return failure
    }

    private static func refuse(_ reason: String, _ status: Int32) -> Int32 {
        let line = "vaultctl-oauth: \(reason): \"vaultctl login\" starts it\n"
        try? StandardStream.error.write(Array(line.utf8))
        return status
    }

    private static func readRequest() -> WorkerRequest? {
        guard
            var line = try? InputSource.standard.readLine(
                limit: WorkerRequest.longestLine, deadline: Deadline(after: .seconds(30)))
        else { return nil }
        defer { SmallFile.wipe(&line) }
        return try? Secret(line).decode(WorkerRequest.self)
    }

    /// Whether somebody was there to read it.
    @discardableResult
    static func say(_ reply: WorkerReply) -> Bool {
        guard let secret = try? Secret(encoding: reply) else { return false }
        var bytes = secret.unprotectedBytes()
        defer { SmallFile.wipe(&bytes) }
        do throws(SystemFailure) {
            try StandardStream.output.write(bytes)
            try StandardStream.output.write([0x0a])
            return true
        } catch {
            return false
        }
    }

    /// What came of it, within the time that the request gives. What is cancelled then may still have an answer.
    private static func answer(to request: WorkerRequest, of caller: ParentProcess) async -> WorkerReply {
        let limit = Duration.seconds(min(max(request.seconds.isNaN ? 0 : request.seconds, 0.01), 86_400))
        let work = Task { await WorkerJob(request, within: limit).reply() }
        caller.watch { work.cancel() }
        let alarm = Task {
            try await Timeout.end(after: limit)
            work.cancel()
        }
        let reply = await work.value
        alarm.cancel()
        // The alarm did that, if nobody else.
        if case .failed(var failure) = reply, failure.kind == .cancelled, !caller.isGone {
            failure.kind = .timedOut
            return .failed(failure)
        }
        return reply
    }
}
#endif
