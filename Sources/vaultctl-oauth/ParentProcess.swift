#if OAuth
import OAuthWire
import TokenVaultPlatform

/// Whoever started this program, which does not outlive them for long: it ends with its standard input.
final class ParentProcess: Sendable {
    private struct State {
        var isGone = false
        var cancel: (@Sendable () -> Void)?
    }
    private let operation: WorkerRequest.Operation
    private let state = Monitor(State())

    /// What it takes to give back what a provider gave: the moment for an answer on its way, and a revocation.
    private static let patience = Duration.seconds(8)

    /// The one who wants `operation` done.
    init(of operation: WorkerRequest.Operation) { self.operation = operation }

    /// Whether they are gone, or want nothing any more.
    var isGone: Bool { state.withLock { $0.isGone } }

    /// Takes signals as the end of the input, unless they have their effect at once, until the result ends.
    func heedSignals() -> SignalForwarder? {
        guard operation != .refresh else { return nil }
        StandardStream.outliveReaders()
        guard let signals = try? SignalForwarder(SignalForwarder.ending) else { return nil }
        // On a thread of its own: whoever takes signals is waited for at the end.
        let thread = WorkerThread(name: "parting")
        guard thread.isRunning else { return nil }
        return signals.watch({ [self] _ in thread.run { self.leave() } }) ? signals : nil
    }

    /// Calls `cancel` when they are gone, and ends the program some seconds later, if it has not ended by then.
    ///
    /// What a sign-in brought is given back in that time, and a revocation goes on. Of a refresh nothing is given back: the
    /// session that is stored may go on with it.
    func watch(_ cancel: @escaping @Sendable () -> Void) {
        let isGone = state.withLock { state in
            state.cancel = cancel
            return state.isGone
        }
        if isGone { return operation == .revoke ? () : cancel() }
        WorkerThread(name: "parent").run { [self] in
            _ = try? InputSource.standard.readLine(limit: 1, deadline: nil)
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
