#if OAuth
import OAuthWire
import TokenVault
import TokenVaultAuth
import TokenVaultOAuth
import TokenVaultPlatform

/// Reads one request, processes it and writes the reply. Opens no vault, and ends when the parent process no
/// longer listens.
enum WorkerProgram {
    /// Runs the worker and returns the exit status: 0 after any reply, 64 when another program than
    /// `vaultctl` started it.
    static func run() async -> Int32 {
        guard ProgramContext.arguments() == [], !StandardStream.input.isTerminal else {
            return refuse("started by hand", 64)
        }
        guard let line = readLine(), let version = WorkerRequest.version(of: line) else {
            return refuse("no request came", 64)
        }
        guard version == WorkerRequest.currentVersion, let request = try? line.decode(WorkerRequest.self)
        else {
            say(.failed(WorkerFailure(.misunderstood)))
            return 0
        }
        let caller = ParentProcess(of: request.operation.kind)
        let signals = caller.heedSignals()
        defer { signals?.stop() }
        let reply = await answer(to: request, of: caller)
        // Without a reader for the reply, the new tokens would be lost.
        switch (reply, request.operation) {
        case (.signedIn(let signedIn), .signIn(let settings)) where caller.isGone || !say(reply):
            let result = signedIn.result(with: settings)
            say(.failed(await revoke(result.tokens, of: result.profile, request.network)))
        case (.exchanged(let tokens), .exchange(_, let profile)) where caller.isGone || !say(reply):
            say(.failed(await revoke(tokens, of: profile, request.network)))
        case (.signedIn, _), (.exchanged, _): break
        default: say(reply)
        }
        return 0
    }

    /// Revokes the tokens of a sign-in. Returns the failure, which reports whether tokens remain.
    private static func revoke(
        _ tokens: TokenInfo, of profile: Profile, _ network: NetworkSettings?
    ) async -> WorkerFailure {
        let limit = Duration.seconds(5)
        let request = WorkerRequest(.revoke(tokens, profile), network: network, within: limit)
        var failure = WorkerFailure(.cancelled)
        if await WorkerJob(request, within: limit).reply() != .revoked { failure.leavesTokens = true }
        return failure
    }

    private static func refuse(_ reason: String, _ status: Int32) -> Int32 {
        let line = "vaultctl-oauth: \(reason): run \"vaultctl login\"\n"
        try? StandardStream.error.write(Array(line.utf8))
        return status
    }

    private static func readLine() -> Secret? {
        guard
            var line = try? InputSource.standard.readLine(
                limit: WorkerRequest.longestLine, deadline: Deadline(after: .seconds(30)))
        else { return nil }
        defer { SmallFile.wipe(&line) }
        return Secret(line)
    }

    /// Writes the reply. Returns whether the parent process could read it.
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

    /// Returns the reply to the request, within the request's time limit. A cancelled job may still have a
    /// reply.
    private static func answer(to request: WorkerRequest, of caller: ParentProcess) async -> WorkerReply {
        let limit = Duration.seconds(min(max(request.seconds.isNaN ? 0 : request.seconds, 0.01), 86_400))
        let (pasted, lines) = AsyncStream.makeStream(
            of: String.self, bufferingPolicy: .bufferingOldest(10_000))
        var job = WorkerJob(request, within: limit)
        job.pasted = pasted
        let work = Task { [job] in await job.reply() }
        caller.watch(pasted: { lines.yield($0) }, cancel: { work.cancel() })
        let alarm = Task {
            try await Timeout.end(after: limit)
            work.cancel()
        }
        let reply = await work.value
        alarm.cancel()
        // The parent process did not cancel the job, so the alarm did.
        if case .failed(var failure) = reply, failure.kind == .cancelled, !caller.isGone {
            failure.kind = .timedOut
            return .failed(failure)
        }
        return reply
    }
}
#endif
