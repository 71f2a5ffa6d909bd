internal import Synchronization
internal import TokenVaultCore

/// What this process remembers of items in the keyring, so that a call can go to its item directly.
///
/// The memory is only a hint of where to look. The order of the bus makes a hint good enough to use without
/// another query. A service that reports a change before it answers (``hasToldFirst``) has reported every
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

    struct State {
        // `since` is the number of signals when the item was searched.
        var items: [Name: (item: KeyringItem, isCurrent: Bool, since: UInt64)] = [:]
        var names: [String: Name] = [:]
        // The number of signals, and for each path the number of the last signal about it.
        var told: UInt64 = 0
        var toldOf: [String: UInt64] = [:]
        // The number of the last signal about a keyring itself: an earlier search may have found an item that
        // no longer counts.
        var toldOfKeyrings: UInt64 = 0
        // The number of the last signal about an unknown item.
        var lastUnknown: UInt64 = 0
        var hasToldFirst = false
        // The items that were created or replaced during our own write, and how often.
        var isWriting = false
        var writingSince: UInt64 = 0
        var madeMeanwhile: [String: Int] = [:]
        // The items that were not read yet, the items of other programs, and commits under way.
        var mustSearch = true
        var unknown: Set<String> = []
        // The number of signals when there were too many unknown items to read one by one.
        var overflowed: UInt64?
        var foreign: Set<String> = []
        var intents: Set<String> = []
        // Commits under way in locked keyrings, of any service.
        var lockedIntents: Set<String> = []
        var newest: UInt64 = 0
        var ownCommits: [TokenKey: CommitIntent] = [:]
        // For each service, grows with every commit of several changes that begins or ends.
        var commits: [TokenKey: UInt64] = [:]
        var announced: [Name: Announced] = [:]

        mutating func remember(_ item: KeyringItem, _ name: Name, isCurrent: Bool, since moment: UInt64) {
            if let old = items[name]?.item.path { names[old] = nil }
            // Another program gave the existing item another name.
            if let former = names[item.path], former != name { items[former] = nil }
            items[name] = (item, isCurrent, moment)
            names[item.path] = name
            note(item.metadata.generation)
        }

        /// A generation was seen: those to come are above it.
        mutating func note(_ generation: Generation) { newest = max(newest, generation.rawValue) }

        /// Whether a commit under way may be at `path`.
        func mayBeCommit(_ path: String) -> Bool {
            unknown.contains(path) || intents.contains(path) || madeMeanwhile[path] != nil
        }

        /// A commit of several changes ended, of whichever service.
        mutating func noteFinishedCommit() {
            for name in commits.keys { commits[name]? += 1 }
        }

        /// Whether it is known what the item at `path` is.
        func isKnown(_ path: String) -> Bool {
            names[path] != nil || foreign.contains(path) || intents.contains(path)
        }
    }

    let state = Mutex(State())

    /// Another service, or another bus: nothing is known.
    func forgetAll() {
        state.withLock { state in
            var fresh = State()
            // Results of searches that began before this reset do not count: their moment is too early.
            fresh.told = state.told + 1
            fresh.toldOfKeyrings = fresh.told
            fresh.newest = state.newest
            fresh.announced = state.announced
            fresh.commits = state.commits.mapValues { $0 + 1 }
            state = fresh
        }
    }

    /// To be taken before something is read, and given when it is remembered.
    var moment: UInt64 { state.withLock { $0.told } }

    /// Whether a signal since `moment` was about an unknown item. That item may have a key that is remembered, and count more.
    func hasUnknown(since moment: UInt64) -> Bool { state.withLock { $0.lastUnknown > moment } }

    /// What is known of an item.
    func recall(_ name: Name) -> Known? {
        state.withLock { state in
            guard let known = state.items[name], known.since >= state.toldOfKeyrings else { return nil }
            return Known(item: known.item, isCurrent: known.isCurrent && state.hasToldFirst)
        }
    }

    /// Whether `item` is still what is known of `name`, and current.
    func isCurrent(_ item: KeyringItem, _ name: Name) -> Bool {
        state.withLock { state in
            guard state.hasToldFirst, let known = state.items[name], known.since >= state.toldOfKeyrings
            else { return false }
            return known.isCurrent && known.item.path == item.path
        }
    }

    /// Remembers what was searched and read after `moment`.
    func remember(_ item: KeyringItem, _ name: Name, since moment: UInt64) {
        state.withLock { state in
            state.remember(
                item, name, isCurrent: state.toldOf[item.path] ?? 0 <= moment, since: moment)
        }
    }

    /// The item at `path` is gone, or not what it was.
    func forget(path: String) {
        state.withLock { state in
            if let name = state.names.removeValue(forKey: path) { state.items[name] = nil }
            state.unknown.remove(path)
            state.intents.remove(path)
        }
    }

    /// A generation above every one seen, not below `now` in microseconds since 1970.
    func nextGeneration(now: UInt64, above seen: UInt64) -> Generation {
        state.withLock { state in
            // The clock was set back by more than a day. Readers would reject generations that continue from
            // there.
            if state.newest > now + 86_400_000_000 { state.newest = 0 }
            state.newest = max(now, min(max(state.newest, seen), ItemLabel.bound - 2) + 1)
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
            state.commits[TokenKey(intent.service), default: 0] += 1
        }
    }

    /// All of its changes were made, or not: `isFinished`.
    func end(_ intent: CommitIntent, isFinished: Bool) {
        state.withLock { state in
            state.ownCommits[TokenKey(intent.service)] = nil
            state.commits[TokenKey(intent.service), default: 0] += 1
            if !isFinished { state.mustSearch = true }
        }
    }

    /// How many commits of several changes began or ended in `service`: what was read in parts while it grew
    /// may be a mixture.
    func commits(in service: String) -> UInt64 {
        state.withLock { $0.commits[TokenKey(service), default: 0] }
    }

    /// Another process made a commit of several changes.
    func noteCommit(in service: String) {
        state.withLock { state in
            // Counts only services that this process reads: another program can name any number of services.
            let name = TokenKey(service)
            if let count = state.commits[name] { state.commits[name] = count + 1 }
        }
    }

    /// A commit of several changes ended while it was looked at, of whichever service.
    func noteFinishedCommit() { state.withLock { $0.noteFinishedCommit() } }

    /// `service` is read here: commits of it are counted from now on.
    func watchCommits(in service: String) {
        state.withLock { $0.commits[TokenKey(service), default: 0] += 0 }
    }

    /// What readers were told of `name` last.
    func announced(_ name: Name) -> Announced? { state.withLock { $0.announced[name] } }

    /// Whether readers are to be told that `name` has this generation now: nothing as new was told.
    func isNews(_ name: Name, _ generation: Generation, isDeleted: Bool) -> Bool {
        state.withLock { state in
            if let told = state.announced[name], told.generation >= generation { return false }
            state.announced[name] = Announced(generation: generation, isDeleted: isDeleted)
            state.note(generation)
            return true
        }
    }
}
