#if OAuth
import OAuthWire
import TokenVaultPlatform

/// The process that started this program. This program ends soon after the parent process, when its standard
/// input ends.
final class ParentProcess: Sendable {
    private struct State {
        var isGone = false
        var cancel: (@Sendable () -> Void)?
    }
    private let operation: WorkerRequest.Operation.Kind
    private let state = Monitor(State())

    /// The longest time for giving tokens back: a moment for an answer on its way, then a revocation.
    private static let patience = Duration.seconds(8)

    /// The longest pasted address, in bytes.
    private static let longestAddress = 16 << 10

    /// Creates the watch over the parent process, which requested `operation`.
    init(of operation: WorkerRequest.Operation.Kind) { self.operation = operation }

    /// Whether the parent process is gone or has cancelled the request.
    var isGone: Bool { state.withLock { $0.isGone } }

    /// Treats signals as the end of the input, until the returned forwarder ends. Returns `nil` when signals
    /// keep their default effect.
    func heedSignals() -> SignalForwarder? {
        guard operation != .refresh else { return nil }
        StandardStream.outliveReaders()
        guard let signals = try? SignalForwarder(SignalForwarder.ending) else { return nil }
        // The leave runs on a thread of its own, because ending the forwarder waits for the thread that takes
        // signals.
        let thread = WorkerThread(name: "parting")
        guard thread.isRunning else { return nil }
        return signals.watch({ [self] _ in thread.run { self.leave() } }) ? signals : nil
    }

    /// Calls `pasted` with each line, and `cancel` at the end of the input. Then ends the program within eight
    /// seconds.
    ///
    /// In that time, the tokens of a sign-in are revoked and a revocation continues. The tokens of a refresh
    /// are not revoked, because the stored session may continue with them.
    func watch(
        pasted: @escaping @Sendable (String) -> Void, cancel: @escaping @Sendable () -> Void
    ) {
        let isGone = state.withLock { state in
            state.cancel = cancel
            return state.isGone
        }
        if isGone { return operation == .revoke ? () : cancel() }
        WorkerThread(name: "parent").run { [self] in
            while let line = try? InputSource.standard.readLine(limit: Self.longestAddress, deadline: nil),
                !line.isEmpty
            {
                pasted(String(decoding: line, as: UTF8.self))
            }
            leave()
        }
    }

    private func leave() {
        if operation == .refresh { ProgramContext.end(1) }
        let cancel = state.withLock { state in
            state.isGone = true
            return operation == .revoke ? nil : state.cancel
        }
        cancel?()
        _ = state.wait(atMost: Self.patience) { _ in Void?.none }
        ProgramContext.end(1)
    }
}
#endif
