internal import Synchronization
internal import TokenVaultCore

/// What the service tells of items, and what has to be looked at because of it.
extension KeyringMemory {
    // Up to this number, unknown items are read one by one. Beyond it, a search finds our items among them.
    private static let mostUnknown = 200

    /// The service tells of an item; on GIO's thread. Returns whose item was there, and whether a write of
    /// our own is under way, which may be what it tells of.
    @discardableResult
    func take(_ member: String, _ path: String) -> (name: Name?, isWriting: Bool) {
        state.withLock { state in
            let name = state.names[path]
            let before = (name, state.isWriting)
            state.told += 1
            if member == "ItemDeleted" {
                if state.mayBeCommit(path) { state.noteFinishedCommit() }
                if let name { state.items[name] = nil }
                state.names[path] = nil
                state.toldOf[path] = nil
                for set in [\State.unknown, \.foreign, \.intents] { state[keyPath: set].remove(path) }
                return before
            }
            state.toldOf[path] = state.told
            if let name { state.items[name]?.isCurrent = false }
            if member == "ItemChanged" {
                // Another program's item may have other attributes now.
                if state.foreign.remove(path) != nil { Self.mark(path, &state) }
            } else if state.isWriting {
                state.madeMeanwhile[path, default: 0] += 1
            } else if !state.isKnown(path) {
                Self.mark(path, &state)
            }
            return before
        }
    }

    /// The service tells that a keyring was made, deleted, locked, unlocked or renamed; on GIO's thread. Every key is
    /// searched again, and so are commits under way.
    func takeKeyringSignal() {
        state.withLock { state in
            state.told += 1
            state.toldOfKeyrings = state.told
            state.mustSearch = true
        }
    }

    private static func mark(_ path: String, _ state: inout State) {
        state.unknown.insert(path)
        state.lastUnknown = state.told
        guard state.unknown.count > mostUnknown else { return }
        state.unknown = []
        state.overflowed = state.told
        state.mustSearch = true
    }

    // MARK: - Writes

    /// An item is about to be made.
    func beginWrite() {
        state.withLock { state in
            state.isWriting = true
            state.writingSince = state.told
        }
    }

    /// The write that was begun is over. `item` is what was made, if it was and if it is an item of a key.
    func endWrite(path: String?, _ item: KeyringItem?) {
        state.withLock { state in
            state.isWriting = false
            let signals = path.flatMap { state.madeMeanwhile.removeValue(forKey: $0) } ?? 0
            // The service reported the item before it answered, so it will do the same for other items.
            if signals > 0 { state.hasToldFirst = true }
            if let item {
                let name = Name(item.metadata.service, item.metadata.key)
                state.remember(item, name, isCurrent: signals == 1, since: state.writingSince)
            } else if let path {
                // The intent of a commit of our own.
                state.intents.insert(path)
            }
            for path in state.madeMeanwhile.keys where !state.isKnown(path) { Self.mark(path, &state) }
            state.madeMeanwhile = [:]
        }
    }

    // MARK: - Commits under way

    /// What has to be looked at before a read can be trusted to see whole commits.
    struct Unseen {
        /// Every commit under way has to be searched.
        var mustSearch: Bool
        /// Every item of ours has to be searched.
        var mustSearchItems: Bool
        /// The paths of items that this process has not looked at.
        var unknown: [String]
        /// Commits under way.
        var intents: [String]
        /// Whether locked keyrings have some.
        var hasLockedIntents: Bool

        var isEmpty: Bool {
            !mustSearch && !mustSearchItems && unknown.isEmpty && intents.isEmpty && !hasLockedIntents
        }
    }

    var unseen: Unseen {
        state.withLock { state in
            Unseen(
                mustSearch: state.mustSearch, mustSearchItems: state.overflowed != nil,
                unknown: Array(state.unknown) + state.madeMeanwhile.keys.filter { !state.isKnown($0) },
                intents: Array(state.intents), hasLockedIntents: !state.lockedIntents.isEmpty)
        }
    }

    /// Stores the result of a search for commits under way, begun after `moment`. `locked` are those in locked
    /// keyrings. Other known commits stay, since the service may have reported them after the search. The service
    /// reports each item of a keyring that is unlocked, and a read shows that a commit is gone.
    func hasSearched(_ intents: [String], locked: [String], since moment: UInt64) {
        state.withLock { state in
            state.lockedIntents = Set(locked)
            state.intents.subtract(locked)
            state.intents.formUnion(intents)
            if state.told == moment { state.mustSearch = false }
        }
    }

    /// The commit at `path` cannot be read: its keyring was locked.
    func noteLocked(intent path: String) {
        state.withLock { state in
            state.intents.remove(path)
            state.lockedIntents.insert(path)
        }
    }

    /// Every item of ours was searched after `moment`: what is at none of `paths` is another program's.
    func hasSearched(items paths: [String], since moment: UInt64) {
        state.withLock { state in
            guard let overflowed = state.overflowed, overflowed <= moment else { return }
            state.overflowed = nil
            let new = paths.filter { !state.isKnown($0) }
            guard new.count > Self.mostUnknown else { return state.unknown.formUnion(new) }
            // Each new item may be another item of a known key, so every key is searched again.
            state.items = [:]
            state.names = [:]
        }
    }

    /// The item at `path` was looked at after `moment`: its schema, and its name when it is an item of ours.
    func hasSeen(_ path: String, schema: String?, _ name: Name?, since moment: UInt64) {
        state.withLock { state in
            // A commit counts at once, whatever was reported since: other processes may have read by it.
            if schema == CommitIntent.schema, name == nil { state.intents.insert(path) }
            guard state.toldOf[path] ?? 0 <= moment else { return }
            state.unknown.remove(path)
            if let name {
                // Another item of a key that may be known, so that key is searched again.
                guard state.names[path] != name, let old = state.items.removeValue(forKey: name) else {
                    return
                }
                state.names[old.item.path] = nil
            } else if schema != CommitIntent.schema {
                state.foreign.insert(path)
            }
        }
    }
}
