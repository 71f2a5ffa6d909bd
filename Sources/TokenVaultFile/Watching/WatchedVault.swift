internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultPlatform

/// A vault as ``VaultWatcher`` sees it.
protocol WatchedVault: AnyObject, Sendable {
    /// The observers of the vault.
    var hub: ChangeHub { get }
    /// The interval between looks where the system does not report changes.
    var watchInterval: Duration { get }
    /// The place where changes show; `nil` before the first unlock.
    var watchedPlace: WatchedPlace? { get }
    /// Looks at what other processes wrote and notifies the observers. Returns false when that failed, and is
    /// worth another attempt.
    func lookAtOthers() -> Bool
}

/// The file that is read now, and the directory in which another may take its place.
struct WatchedPlace: Sendable {
    let file: any DiskFile
    let identity: FileIdentity
    let directory: any DiskDirectory
    let name: String
}

extension BlockingFileVault: WatchedVault {
    /// Returns a new reader of the changes of `service`.
    func changes(service: String) -> TokenChanges {
        guard !isInherited else {
            let hub = ChangeHub()
            hub.end()
            return hub.subscribe(service: service)
        }
        let (identity, hub) = (ObjectIdentifier(self), hub)
        let changes = hub.subscribe(service: service) { VaultWatcher.shared.release(identity) }
        VaultWatcher.shared.observe(self)
        return changes
    }

    var watchInterval: Duration { configuration.watchInterval }

    var watchedPlace: WatchedPlace? {
        guard let session = state.withLock({ $0.session }) else { return nil }
        let (file, identity) = session.log.state.withLock { ($0.file, $0.identity) }
        return WatchedPlace(
            file: file, identity: identity, directory: location.directory, name: location.name)
    }

    func lookAtOthers() -> Bool {
        lockIfDue()
        guard let session = state.withLock({ $0.session }) else { return true }
        do throws(TokenStorageError) {
            try session.log.lookAtOthers()
            if try session.followKeybag() { session.announceDark() }
            return true
        } catch {
            return false
        }
    }

    /// Publishes the kept changes after an unlock.
    func tellObservers(ofFirstUnlock isFirst: Bool) {
        guard hub.isObserved, let session = state.withLock({ $0.session }) else { return }
        if isFirst {
            // The changes since the observers began could not be read.
            hub.overflow()
            VaultWatcher.shared.observe(self)
        } else {
            session.announceDark()
        }
    }
}

extension VaultLog {
    /// Takes in what others wrote, also when they put another file in the place of this one.
    func lookAtOthers() throws(TokenStorageError) {
        try withFreshState { (state) throws(TokenStorageError) in
            if isWriting.withLock({ $0 }) == 0, try isReplaced(state) { try reload(&state) }
        }
    }

    /// Takes in another file that others put in the place of this one. Throws `insecurePermissions` when it
    /// is open to others by now.
    func lookAtPlace() throws(TokenStorageError) {
        try withLockedState { (state) throws(TokenStorageError) in
            guard isWriting.withLock({ $0 }) == 0 else { return }
            let there = try attributesInPlace(of: state.identity)
            if there.identity != state.identity { return try reload(&state) }
            try there.requirePrivate(location.path)
        }
    }
}

extension VaultSession {
    /// Publishes the kept changes, in the order of the log.
    func announceDark() { log.state.withLock { _ in announcer.announceDark() } }
}
