internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultPlatform

/// One vault that ``VaultWatcher`` looks after.
final class VaultWatch: Sendable {
    let hub: ChangeHub
    // A closure, since a reference must not be released for the last time within a lock.
    private let vault: @Sendable () -> (any WatchedVault)?

    private struct Aim {
        var place: WatchedPlace?
        var file: FileNotifier.Watch?
        var directory: FileNotifier.Watch?
        /// The interval between looks; `nil` when the system reports every change.
        var interval: Duration?
        /// The time of the next look without a report; `nil` for never.
        var due: Deadline?
        var hasEnded = false
    }

    private let aim = Mutex(Aim())
    // Only one thread aims at a time: otherwise an older place could remain.
    private let aiming = Mutex(())

    init(_ vault: any WatchedVault) {
        hub = vault.hub
        self.vault = { [weak vault] in vault }
    }

    /// The longest time until the next look; `nil` when the system reports changes.
    var patience: Duration? {
        aim.withLock { $0.due?.remaining }
    }

    /// Returns whether `report` says, or leaves open, that something happened to the vault.
    func concerns(_ report: FileNotifier.Report) -> Bool {
        aim.withLock { aim in
            if report.isIncomplete || aim.due?.hasPassed == true { return true }
            if let file = aim.file, report.files.contains(file) { return true }
            guard let directory = aim.directory, let name = aim.place?.name else { return false }
            return report.names[directory]?.contains(name) ?? false
        }
    }

    /// Looks at what others wrote, and follows the vault to another file.
    func look(with notifier: FileNotifier?) {
        guard let vault = vault() else { return }
        var isGood = vault.lookAtOthers()
        // No event reports the writes to another file before its watch began.
        while isGood, aim(at: vault, with: notifier) { isGood = vault.lookAtOthers() }
        setDue(hasFailed: !isGood)
    }

    /// Watches the vault's file, if it is not watched yet.
    func aim(with notifier: FileNotifier?) {
        guard let vault = vault(), aim(at: vault, with: notifier) else { return }
        setDue(hasFailed: !vault.lookAtOthers())
    }

    /// Sets the time of the next look, for changes that the system does not report and files that could not
    /// be read.
    private func setDue(hasFailed: Bool) {
        aim.withLock { aim in
            aim.due = (aim.interval ?? (hasFailed ? .seconds(1) : nil)).map { Deadline(after: $0) }
        }
    }

    /// Stops watching.
    func end(with notifier: FileNotifier?) {
        let watches = aim.withLock { aim in
            defer { aim = Aim(hasEnded: true) }
            return [aim.file, aim.directory]
        }
        release(watches, of: notifier)
    }

    private func release(_ watches: [FileNotifier.Watch?], of notifier: FileNotifier?) {
        for case let watch? in watches { notifier?.release(watch) }
    }

    /// Watches the file that the vault reads now; returns whether that is another file than before.
    private func aim(at vault: any WatchedVault, with notifier: FileNotifier?) -> Bool {
        aiming.withLock { _ in
            guard let place = vault.watchedPlace else { return false }
            let old = aim.withLock { $0 }
            guard old.place?.identity != place.identity, !old.hasEnded else { return false }
            var new = Aim(place: place)
            let isToldOf = { (subject: any Sendable) -> (any Notifying)? in
                guard let subject = subject as? any Notifying,
                    FileSystemKind.tellsEveryChange(subject.fileSystemType)
                else { return nil }
                return subject
            }
            if let notifier, let file = isToldOf(place.file), let directory = isToldOf(place.directory) {
                new.file = try? notifier.watch(contentsOf: file)
                new.directory = try? notifier.watch(namesIn: directory)
            }
            if new.file == nil || new.directory == nil { new.interval = vault.watchInterval }
            let hasEnded = aim.withLock { aim in
                if aim.hasEnded { return true }
                aim = new
                return false
            }
            release(hasEnded ? [new.file, new.directory] : [old.file, old.directory], of: notifier)
            return !hasEnded
        }
    }
}
