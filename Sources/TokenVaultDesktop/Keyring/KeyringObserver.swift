internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultPlatform

/// Tells readers of changes that no TokenVault made: the service signals that an item changed, and its
/// generation tells whether that is news.
final class KeyringObserver: Sendable {
    private struct State {
        // When the watch of each service began, in microseconds since 1970.
        var since: [TokenKey: UInt64] = [:]
        var changed: Set<String> = []
        var deleted: Set<KeyringMemory.Name> = []
        var isLooking = false
    }

    private let state = Mutex(State())

    /// A service is watched from now on.
    func watch(_ service: String) {
        let now = WallClock.microseconds
        state.withLock { state in
            if state.since[TokenKey(service)] == nil { state.since[TokenKey(service)] = now }
        }
    }

    /// The services that are watched.
    var services: [String] { state.withLock { $0.since.keys.map(\.name) } }

    /// Whether a reader has watched `service` since before `generation`.
    func isWatched(_ service: String, since generation: Generation) -> Bool {
        state.withLock { state in
            guard !state.since.isEmpty, let since = state.since[TokenKey(service)] else { return false }
            return since < generation.rawValue
        }
    }

    /// Keeps the item of a signal. Returns whether the caller has to start a thread that looks.
    func note(changed path: String?, deleted name: KeyringMemory.Name?) -> Bool {
        state.withLock { state in
            guard !state.since.isEmpty else { return false }
            if let path { state.changed.insert(path) }
            if let name, state.since[name.service] != nil { state.deleted.insert(name) }
            guard !state.isLooking, !state.changed.isEmpty || !state.deleted.isEmpty else { return false }
            state.isLooking = true
            return true
        }
    }

    /// What to look at; `nil` when all was looked at.
    func next() -> (changed: [String], deleted: [KeyringMemory.Name])? {
        state.withLock { state in
            if state.changed.isEmpty, state.deleted.isEmpty {
                state.isLooking = false
                return nil
            }
            defer {
                state.changed = []
                state.deleted = []
            }
            return (Array(state.changed), Array(state.deleted))
        }
    }

    /// Ends the look after an error, for example because the keyring is not there. Drops all that is still to
    /// be looked at.
    func giveUp() {
        state.withLock { state in
            state.changed = []
            state.deleted = []
            state.isLooking = false
        }
    }
}

extension SecretService {
    /// A new reader of a service's changes. The connection is made in the background.
    func subscribe(_ service: String) -> TokenChanges {
        observer.watch(service)
        let changes = hub.subscribe(service: service)
        threads.run { [weak self] in self?.catchUp(service) }
        return changes
    }

    /// Tells every reader to list again, since changes may have gone unseen.
    func reportGap() {
        for service in observer.services {
            hub.publish(service: service, .overflowed)
            threads.run { [weak self] in self?.catchUp(service) }
        }
    }

    /// Looks at every item of a watched service: from now on a signal about one of them says something.
    private func catchUp(_ service: String) {
        let call = BusCall(timeout: configuration.timeout)
        // Without a keyring there is nothing to watch; the next call that finds a keyring catches up.
        _ = try? withKeyring(call, mayAsk: false) { (access) throws(TokenStorageError) in
            _ = try access.search(service, nil)
        }
    }

    /// A signal told of an item, on GIO's thread.
    func observe(changed path: String?, deleted name: KeyringMemory.Name?) {
        guard observer.note(changed: path, deleted: name) else { return }
        threads.run { [weak self] in self?.look() }
    }

    private func look() {
        while let (changed, deleted) = observer.next() {
            let call = BusCall(timeout: configuration.timeout)
            do {
                try withKeyring(call, mayAsk: false) { (access) throws(TokenStorageError) in
                    for item in try access.items(at: changed) where !item.isLocked { access.noteRead(item) }
                    if !deleted.isEmpty { try access.noteDeletions(deleted) }
                }
            } catch {
                return observer.giveUp()
            }
        }
    }
}

extension KeyringAccess {
    /// Publishes an item that was read, if a reader watches its service and the item is news.
    func noteRead(_ item: KeyringItem) {
        let metadata = item.metadata
        guard service.observer.isWatched(metadata.service, since: metadata.generation) else { return }
        service.publish(
            CommitNotice(
                service: metadata.service, generation: metadata.generation, keys: [(metadata.key, false)]))
    }

    /// Publishes the deletions of the items `names` with a generation of our own. Leaves out the items that a
    /// TokenVault deleted, and those that are there again.
    fileprivate func noteDeletions(_ names: [KeyringMemory.Name]) throws(TokenStorageError) {
        // Waits for a writer that deleted some of the items: it has then finished and sent its notice.
        try asWriter { () throws(TokenStorageError) in
            for name in names where memory.announced(name).map({ !$0.isDeleted }) ?? true {
                let search = try search(name.service.name, name.key)
                guard search.ours.isEmpty, search.locked.isEmpty else { continue }
                let told = memory.announced(name)?.generation.rawValue ?? 0
                let generation = memory.nextGeneration(now: WallClock.microseconds, above: told)
                service.publish(
                    CommitNotice(
                        service: name.service.name, generation: generation, keys: [(name.key, true)]))
            }
        }
    }
}
