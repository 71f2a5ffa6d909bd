internal import Synchronization

/// What this process remembers of items in the keyring, so that a call can go to its item directly.
///
/// It is only a hint of where to look. What makes a hint good enough to be used without asking again is the
/// order of the bus: a service that tells of a change before it answers (``hasToldFirst``) has told of every
/// change that its next answer can show.
final class KeyringMemory: Sendable {
    /// An item by service and key.
    struct Name: Hashable, Sendable {
        let service: TokenKey
        let key: TokenKey

        init(_ service: String, _ key: TokenKey) {
            self.service = TokenKey(service)
            self.key = key
        }
    }

    /// What is remembered of an item.
    struct Known: Sendable {
        let item: KeyringItem
        /// Nothing was told of the item since it was read, by a service that tells first.
        let isCurrent: Bool
    }

    /// What readers were told of an item.
    struct Announced: Sendable {
        let generation: Generation
        let isDeleted: Bool
    }

    private struct State {
        var items: [Name: (item: KeyringItem, isCurrent: Bool)] = [:]
        var names: [String: Name] = [:]
        // How many signals came: what was read before the latest one may be older than it.
        var told: UInt64 = 0
        var hasToldFirst = false
        // Items that came into being while we made one; one of them is ours.
        var isWriting = false
        var madeMeanwhile: Set<String> = []
        var mustLook = true
        var newest: UInt64 = 0
        var ownCommits: [TokenKey: CommitIntent] = [:]
        // Grows with every commit of several changes that began or ended.
        var commits: UInt64 = 0
        var announced: [Name: Announced] = [:]
    }

    private let state = Mutex(State())

    /// Another service, or another bus: nothing is known.
    func forgetAll() {
        state.withLock { state in
            var fresh = State()
            fresh.newest = state.newest
            fresh.announced = state.announced
            fresh.commits = state.commits + 1
            state = fresh
        }
    }

    /// To be taken before something is read, and given when it is remembered.
    var moment: UInt64 { state.withLock { $0.told } }

    /// What is known of an item.
    func recall(_ name: Name) -> Known? {
        state.withLock { state in
            state.items[name].map { Known(item: $0.item, isCurrent: $0.isCurrent && state.hasToldFirst) }
        }
    }

    /// Whether `item` is still what is known of `name`, and current.
    func isCurrent(_ item: KeyringItem, _ name: Name) -> Bool {
        state.withLock { state in
            guard state.hasToldFirst, let known = state.items[name] else { return false }
            return known.isCurrent && known.item.path == item.path
        }
    }

    /// Remembers what was read after `moment`.
    func remember(_ item: KeyringItem, _ name: Name, since moment: UInt64) {
        state.withLock { state in
            if let old = state.items[name]?.item.path { state.names[old] = nil }
            state.items[name] = (item, moment == state.told)
            state.names[item.path] = name
            state.newest = max(state.newest, item.metadata.generation.rawValue)
        }
    }

    /// The item at `path` is not what it was.
    func forget(path: String) {
        state.withLock { state in
            if let name = state.names.removeValue(forKey: path) { state.items[name] = nil }
        }
    }

    /// A generation above every one seen, not below `now` in microseconds since 1970.
    func nextGeneration(now: UInt64, above seen: UInt64) -> Generation {
        state.withLock { state in
            state.newest = max(now, max(state.newest, seen) + 1)
            return Generation(rawValue: state.newest)
        }
    }

    // MARK: - Commits under way

    /// The commit of several changes that this process is making in `service`.
    func ownCommit(in service: String) -> CommitIntent? {
        state.withLock { $0.ownCommits.isEmpty ? nil : $0.ownCommits[TokenKey(service)] }
    }

    /// A commit of several changes happened here, and its changes follow.
    func begin(_ intent: CommitIntent) {
        state.withLock { state in
            state.ownCommits[TokenKey(intent.service)] = intent
            state.commits += 1
        }
    }

    /// All of its changes were made, or not: `isFinished`.
    func end(_ intent: CommitIntent, isFinished: Bool) {
        state.withLock { state in
            state.ownCommits[TokenKey(intent.service)] = nil
            state.commits += 1
            if !isFinished { state.mustLook = true }
        }
    }

    /// How many commits of several changes began or ended: what was read in parts while it grew may be a
    /// mixture.
    var commits: UInt64 { state.withLock { $0.commits } }

    /// Another process made a commit of several changes.
    func noteCommit() { state.withLock { $0.commits += 1 } }

    /// What readers were told of `name` last.
    func announced(_ name: Name) -> Announced? { state.withLock { $0.announced[name] } }

    /// Whether readers are to be told that `name` has this generation now: nothing as new was told.
    func isNews(_ name: Name, _ generation: Generation, isDeleted: Bool) -> Bool {
        state.withLock { state in
            if let told = state.announced[name], told.generation >= generation { return false }
            state.announced[name] = Announced(generation: generation, isDeleted: isDeleted)
            state.newest = max(state.newest, generation.rawValue)
            return true
        }
    }

    /// Whether an item came into being that nobody here knows: it may be a commit under way.
    var mustLook: Bool { state.withLock { $0.mustLook || !$0.madeMeanwhile.isEmpty } }

    /// Whoever looked at `moment` found no commit under way.
    func hasLooked(since moment: UInt64) {
        state.withLock { if $0.told == moment { $0.mustLook = false } }
    }

    /// An item is about to be made.
    func beginWrite() { state.withLock { $0.isWriting = true } }

    /// An item was made or replaced at `path`; `nil` when that failed.
    func endWrite(_ path: String?) {
        state.withLock { state in
            state.isWriting = false
            if let path, state.madeMeanwhile.remove(path) != nil { state.hasToldFirst = true }
            if !state.madeMeanwhile.isEmpty { state.mustLook = true }
            state.madeMeanwhile = []
        }
    }

    // MARK: - Signals

    /// The service tells of an item; on GIO's thread. Returns whose item was there, and whether a write of
    /// our own is under way, which may be what it tells of.
    @discardableResult
    func take(_ member: String, _ path: String) -> (name: Name?, isWriting: Bool) {
        state.withLock { state in
            state.told += 1
            let name = state.names[path]
            let before = (name, state.isWriting)
            switch member {
            case "ItemCreated", "ItemChanged":
                if let name { state.items[name]?.isCurrent = false }
                guard member == "ItemCreated" else { return before }
                if state.isWriting {
                    state.madeMeanwhile.insert(path)
                } else if name == nil {
                    state.mustLook = true
                    // It may be another item of a key that is known: all are searched anew.
                    state.items = [:]
                    state.names = [:]
                }
            case "ItemDeleted":
                if let name {
                    state.items[name] = nil
                    state.names[path] = nil
                }
            default: break
            }
            return before
        }
    }
}
