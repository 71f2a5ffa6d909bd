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
        endWithInput()
        guard request.version == WorkerRequest.currentVersion else {
            say(.failed(WorkerFailure(.misunderstood, "the version")))
            return 0
        }
        say(await answer(to: request))
        return 0
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

    /// Ends the program when its standard input does: whoever started it is gone, or wants nothing any more.
    private static func endWithInput() {
        WorkerThread(name: "parent").run {
            _ = try? InputSource.standard.readLine(limit: 1, deadline: nil)
            ProgramContext.end(1)
        }
    }

    static func say(_ reply: WorkerReply) {
        guard let secret = try? Secret(encoding: reply) else { return }
        var bytes = secret.unprotectedBytes()
        defer { SmallFile.wipe(&bytes) }
        try? StandardStream.output.write(bytes)
        try? StandardStream.output.write([0x0a])
    }

    /// What came of it, within the time that the request gives. What is cancelled then may still have an answer.
    private static func answer(to request: WorkerRequest) async -> WorkerReply {
        let limit = Duration.seconds(min(max(request.seconds.isNaN ? 0 : request.seconds, 0.01), 86_400))
        let work = Task { await Work(request, within: limit).reply() }
        let alarm = Task {
            try await Patience.end(after: limit)
            work.cancel()
        }
        let reply = await work.value
        alarm.cancel()
        // Nobody but the alarm cancels it.
        if case .failed(let failure) = reply, failure.kind == .cancelled {
            return .failed(WorkerFailure(.timedOut))
        }
        return reply
    }
}
#endif
