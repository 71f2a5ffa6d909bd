internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultCrypto

/// The keys that an unlock gave, and those that are left after a lock.
///
/// A missing key enforces what a policy forbids.
final class KeyRing: Sendable {
    /// The access to a class: its keys, or the reason that it cannot be used.
    enum Access {
        case keys(ClassKeys)
        /// The class is wiped until the next unlock.
        case locked
        /// The class set is another device's, or this device's key is missing.
        case wrongDevice
        /// The unlock method does not lead to this class.
        case notPermitted
        /// The class's keys were destroyed with the last passphrase or with a device: its items are lost.
        case destroyed
        /// The vault has no such class.
        case unsupported
        /// Every key is wiped, for good.
        case closed
    }

    /// The roots, for changing the keybag. Gone while locked.
    struct Roots: Sendable {
        /// The root key. Slots of the scope *after first unlock* do not lead to it.
        let all: SymmetricKey?
        let holder: SymmetricKey
        /// The passcode root. Only passphrases lead to it.
        let passcode: SymmetricKey?
    }

    /// The facts that an unlock found beside the keys.
    struct Facts: Sendable {
        /// The slot that was used.
        var slot: UInt32
        /// This device's tag in frames; `nil` when its key is not there.
        var deviceTag: UInt64?
        /// Whether the keybag has a class set for this device.
        var isEnrolled: Bool
        /// Whether the vault has a class set for any device.
        var hasDevices: Bool
        var hasPasscodeSlot: Bool
        /// Whether this device has the passcode pepper.
        var hasPepper: Bool
        /// The tags of the keybag's sets: an item of another set is gone with its device.
        var setTags: Set<UInt64> = [0]
        /// The names of the keybag's roots and of those before them.
        var succession = Succession()
        /// The keybag that the keys are of, or that was checked since; `nil` until it was checked.
        var keybag: KeybagRecord?
        /// Whether another keybag is in use by now, and the roots to look into it are not held.
        var isStale = false
        /// Whether the vault got another root key since. Nothing is answered from its file until the next unlock.
        var hasLostRoot = false
    }

    struct State {
        var roots: Roots?
        /// The key of the keybag's code for every holder. It stays while locked, for the keybags that others make meanwhile.
        var holderCode: SymmetricKey?
        /// The class keys by policy number, set tag and version.
        var classes: [ClassName: ClassKeys]
        /// The newest version of each class, for writing.
        var current: [AccessPolicy: ClassKeys]
        var facts: Facts
        /// The number of calls of ``KeyRing/lock()``.
        var locks = 0
        /// The number of locks that were ordered, not caused by the end of the ring's time.
        var orders = 0
        /// The number of times that other keys replaced these.
        var replacements = 0
        /// Whether every key was wiped, for good: no key comes again, and a missing key says nothing about
        /// the vault.
        var isWiped = false

        /// Takes out the keys that a lock wipes.
        mutating func lock(byItself: Bool = false) -> (Roots?, [ClassKeys]) {
            let gone = classes.values.filter { !$0.policy.isReadableAfterFirstUnlock }
            classes = classes.filter { $0.value.policy.isReadableAfterFirstUnlock }
            current = current.filter { $0.key.isReadableAfterFirstUnlock }
            locks += 1
            if !byItself { orders += 1 }
            defer { roots = nil }
            return (roots, Array(gone))
        }

        /// Keeps those keys for writing of which `keybag` has no newer version.
        mutating func markStale(_ keybag: Keybag) {
            facts.isStale = true
            current = current.filter { policy, keys in
                keybag.newestVersion(of: policy.number, setTag: keys.setTag) == keys.version
            }
        }

        /// Returns the reason that the keys of a class that any root leads to are not held.
        func refusal(of policy: AccessPolicy) -> Access {
            if isWiped { return .closed }
            if facts.isStale { return .locked }
            if policy.isReadableAfterFirstUnlock { return .unsupported }
            guard let roots else { return .locked }
            return roots.all == nil ? .notPermitted : .unsupported
        }
    }

    struct ClassName: Hashable {
        var policy: UInt8
        var setTag: UInt64
        var version: UInt32
    }

    let vault: VaultIdentifier
    let log: LogKeys
    let state: Mutex<State>

    init(
        vault: VaultIdentifier, log: LogKeys, roots: Roots, holderCode: SymmetricKey, classes: [ClassKeys],
        facts: Facts
    ) {
        self.vault = vault
        self.log = log
        var named: [ClassName: ClassKeys] = [:]
        var current: [AccessPolicy: ClassKeys] = [:]
        for keys in classes {
            let name = ClassName(policy: keys.policy.number, setTag: keys.setTag, version: keys.version)
            named[name] = keys
            if (current[keys.policy]?.version ?? 0) < keys.version { current[keys.policy] = keys }
        }
        state = Mutex(
            State(roots: roots, holderCode: holderCode, classes: named, current: current, facts: facts))
    }

    /// The number of locks, for ``replace(with:unlessLockedSince:)``.
    var locks: Int { state.withLock { $0.locks } }

    /// The number of ordered locks: all but those at the end of the ring's time.
    var lockOrders: Int { state.withLock { $0.orders } }

    /// The number of times that other keys replaced these: keys wiped then are no sign of a lock.
    var replacements: Int { state.withLock { $0.replacements } }

    /// Takes over the keys that another unlock of the same vault gave, and wipes the previous keys. Does
    /// nothing if the ring was locked since `locks` was read: an operation that began before a lock never
    /// undoes it. Does nothing if a lock was ordered since `orders` was read. Does nothing if the keys were
    /// replaced since `replacements` was read, which may be by newer keys. Returns whether it took the keys over.
    @discardableResult
    func replace(
        with other: KeyRing, unlessLockedSince locks: Int? = nil, unlessToldToLockSince orders: Int? = nil,
        unlessReplacedSince replacements: Int? = nil
    ) -> Bool {
        var fresh = other.state.withLock { state in
            defer {
                state.roots = nil
                state.holderCode = nil
                state.classes = [:]
                state.current = [:]
            }
            return state
        }
        let (old, isTaken) = state.withLock { state in
            fresh.locks = state.locks
            fresh.orders = state.orders
            fresh.replacements = state.replacements + 1
            if state.isWiped { return (fresh, false) }
            if let locks, state.locks != locks { return (fresh, false) }
            if let orders, state.orders != orders { return (fresh, false) }
            if let replacements, state.replacements != replacements { return (fresh, false) }
            defer { state = fresh }
            return (state, true)
        }
        Self.wipe(old.roots)
        old.holderCode?.wipe()
        for keys in old.classes.values { keys.wipe() }
        return isTaken
    }

    deinit { wipeEverything() }

    /// Whether all keys that the unlock gave are held.
    var isUnlocked: Bool { state.withLock { $0.roots != nil } }

    /// The facts that the unlock found beside the keys.
    var facts: Facts { state.withLock { $0.facts } }

    /// Returns whether the keys are of the keybag that `record` names, or whether that was checked since.
    func isOf(_ record: KeybagRecord) -> Bool { state.withLock { $0.facts.keybag == record } }

    /// Records that the keys are of the keybag that `record` names, and that it was checked.
    func note(_ record: KeybagRecord) { state.withLock { $0.facts.keybag = record } }

    /// Records that another keybag is in use, which was checked and cannot be opened. Nothing that depends on passphrases is
    /// answered until the next unlock. Nothing is written with keys of which that keybag has a newer version
    /// or none. Takes the key of its code, and the names of its roots, where `holder` has others. Does nothing when the ring was
    /// replaced since `replacements` was read.
    func markStale(
        _ keybag: Keybag, _ record: KeybagRecord, holder: (code: SymmetricKey, succession: Succession)? = nil,
        unlessReplacedSince replacements: Int? = nil
    ) {
        let former = state.withLock { state -> SymmetricKey? in
            if state.isWiped { return holder?.code }
            if let replacements, state.replacements != replacements { return holder?.code }
            state.markStale(keybag)
            state.facts.keybag = record
            guard let holder else { return nil }
            defer { state.holderCode = holder.code }
            state.facts.succession = holder.succession
            return state.holderCode
        }
        former?.wipe()
    }

    /// Locks the ring and marks it stale, since the vault has another root key than the held one. That is no lock that
    /// was ordered. Does nothing if the ring was replaced since `replacements` was read.
    func loseRoot(_ keybag: Keybag, unlessReplacedSince replacements: Int) {
        let wiped = state.withLock { state -> (Roots?, [ClassKeys])? in
            guard state.replacements == replacements else { return nil }
            // Whatever versions the other keybag claims, nothing is written beside it with these keys.
            state.current = [:]
            defer {
                state.markStale(keybag)
                state.facts.hasLostRoot = true
            }
            return state.lock(byItself: true)
        }
        if let wiped { Self.wipe(wiped) }
    }

    /// The error that says why the ring is locked.
    var lockedError: TokenStorageError {
        let (hasLostRoot, isWiped) = state.withLock { ($0.facts.hasLostRoot, $0.isWiped) }
        if isWiped { return .file(.closed) }
        return hasLostRoot
            ? .file(.locked, .changedMeanwhile(.keys))
            : .file(.locked)
    }

    /// Wipes the roots and the when-unlocked classes; classes readable after first unlock stay. `byItself` is
    /// a lock at the end of the ring's time: an unlock in progress counts as a use.
    func lock(byItself: Bool = false) {
        Self.wipe(state.withLock { $0.lock(byItself: byItself) })
    }

    private static func wipe(_ gone: (Roots?, [ClassKeys])) {
        wipe(gone.0)
        for keys in gone.1 { keys.wipe() }
    }

    private static func wipe(_ roots: Roots?) {
        roots?.all?.wipe()
        roots?.holder.wipe()
        roots?.passcode?.wipe()
    }

    /// Wipes every key, for good.
    func wipeEverything() {
        // This comes first: a caller that finds no keys from here on gets `closed`.
        state.withLock { $0.isWiped = true }
        lock()
        let (rest, holderCode) = state.withLock { state in
            defer {
                state.holderCode = nil
                state.classes = [:]
                state.current = [:]
            }
            return (Array(state.classes.values), state.holderCode)
        }
        for keys in rest { keys.wipe() }
        holderCode?.wipe()
        log.wipe()
    }
}
