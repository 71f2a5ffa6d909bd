internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultPlatform

/// Looks at the observed vaults of this process whenever another process has written to them.
///
/// One thread serves all of them, while any has an observer. It waits for inotify(7). Where inotify is not
/// available, or does not report everything, the thread looks at the vault's interval.
final class VaultWatcher: Sendable {
    private static let own = PerProcess { VaultWatcher() }
    static var shared: VaultWatcher { own.current }

    private struct State {
        var watches: [ObjectIdentifier: VaultWatch] = [:]
        var notifier: FileNotifier?
        var isRunning = false
    }

    private let state = Mutex(State())
    /// The signal that ends a wait where there is no notifier.
    private let wakeUp = Monitor(false)
    /// The number of threads: for a moment two, when one begins as another ends.
    private let threads = Monitor(0)

    /// Watches `vault`, which has an observer, until ``release(_:)``. Writes after this has returned are
    /// noticed.
    func observe(_ vault: any WatchedVault) {
        let identity = ObjectIdentifier(vault)
        let (watch, notifier) = state.withLock { state -> (VaultWatch?, FileNotifier?) in
            guard vault.hub.isObserved else { return (nil, nil) }
            if state.notifier == nil { state.notifier = try? FileNotifier() }
            let watch = state.watches[identity] ?? VaultWatch(vault)
            state.watches[identity] = watch
            start(&state)
            return (watch, state.notifier)
        }
        watch?.aim(with: notifier)
        // The thread may have to look at an interval from now on.
        wake(notifier)
    }

    /// Stops watching the vault of this identity, unless it has an observer.
    func release(_ vault: ObjectIdentifier) {
        let (released, notifier) = state.withLock { state -> (VaultWatch?, FileNotifier?) in
            guard let watch = state.watches[vault], !watch.hub.isObserved else { return (nil, nil) }
            state.watches[vault] = nil
            return (watch, state.notifier)
        }
        guard let released else { return }
        released.end(with: notifier)
        wake(notifier)
    }

    /// Whether there is a thread.
    var isRunning: Bool { state.withLock { $0.isRunning } }

    /// Waits until there is no thread.
    func waitUntilIdle() { threads.wait { $0 == 0 ? () : nil } }

    /// Returns whether the vault of this identity is looked at at an interval; `nil` when it is not watched.
    func usesInterval(_ vault: ObjectIdentifier) -> Bool? {
        state.withLock { $0.watches[vault] }.map { $0.patience != nil }
    }

    private func wake(_ notifier: FileNotifier?) {
        notifier?.wake()
        wakeUp.announce { $0 = true }
    }

    private func start(_ state: inout State) {
        guard !state.isRunning else { return }
        let thread = WorkerThread(name: "vault-watcher")
        // Without a thread, changes are noticed when this process next reads or writes.
        guard thread.isRunning else { return }
        state.isRunning = true
        threads.withLock { $0 += 1 }
        thread.run { [self] in
            while lookOnce() {}
            threads.announce { $0 -= 1 }
        }
    }

    /// Waits and looks once; returns false when no observer is left.
    private func lookOnce() -> Bool {
        let (watches, notifier) = state.withLock { state in
            if state.watches.isEmpty {
                state.isRunning = false
                state.notifier = nil
            }
            return (Array(state.watches.values), state.notifier)
        }
        if watches.isEmpty { return false }
        let report = wait(atMost: watches.compactMap(\.patience).min(), notifier)
        // The report also concerns the vaults that came while the thread waited.
        for watch in state.withLock({ Array($0.watches.values) }) where watch.concerns(report) {
            watch.look(with: notifier)
        }
        return true
    }

    private func wait(atMost interval: Duration?, _ notifier: FileNotifier?) -> FileNotifier.Report {
        if let notifier { return notifier.wait(atMost: interval) }
        if let interval {
            _ = wakeUp.wait(atMost: interval, Self.takeWakeUp)
        } else {
            wakeUp.wait(Self.takeWakeUp)
        }
        return FileNotifier.Report()
    }

    private static func takeWakeUp(_ isAwake: inout Bool) -> Void? {
        defer { isAwake = false }
        return isAwake ? () : nil
    }
}
