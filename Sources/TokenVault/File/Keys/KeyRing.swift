internal import Synchronization
internal import TokenVaultCrypto

/// The keys that an unlock gave, and what is left of them after a lock.
///
/// What a policy forbids is forbidden here by a key that is not there.
final class KeyRing: Sendable {
    /// Whether a class can be used, and if not, why.
    enum Access {
        case keys(ClassKeys)
        /// The class is wiped until the next unlock.
        case locked
        /// The class set is another device's, or this device's key is missing.
        case wrongDevice
        /// The unlock method does not lead to this class.
        case notPermitted
        /// The class's keys were destroyed with the last passphrase or with a device: its items are no more.
        case destroyed
        /// The vault has no such class.
        case unsupported
        /// Every key is wiped, for good.
        case closed
    }

    /// The roots, for changing the keybag. Gone while locked.
    struct Roots: Sendable {
        /// Slots of the scope *after first unlock* do not lead to it.
        let all: SymmetricKey?
        let holder: SymmetricKey
        /// Only passphrases lead to it.
        let passcode: SymmetricKey?
    }

    /// What an unlock found beside the keys.
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
        /// The sets that the keybag has, by their tags: an item of another set went with its device.
        var setTags: Set<UInt64> = [0]
        /// Which keybag the keys are from, or was looked at since.
        var keybagGeneration: UInt64
        /// Whether another keybag is in use by now, and the roots to look into it are not held.
        var isStale = false
        /// Whether that is since the vault was given another root: all that was held is wiped.
        var hasLostRoot = false
    }

    struct State {
        var roots: Roots?
        /// By policy number and set tag and version.
        var classes: [ClassName: ClassKeys]
        /// The newest version of each class, for writing.
        var current: [AccessPolicy: ClassKeys]
        var facts: Facts
        /// How often ``KeyRing/lock()`` was called.
        var locks = 0
        /// How often that was not because nobody used it.
        var orders = 0
        /// How often other keys took the place of these.
        var replacements = 0
        /// Whether this process is about to give the vault a new root.
        var changesRoot = false
        /// Whether every key was wiped, for good: none comes any more, and what is not there says nothing of the vault.
        var isWiped = false

        /// Takes out what a lock wipes.
        mutating func lock(byItself: Bool = false) -> (Roots?, [ClassKeys]) {
            let gone = classes.values.filter { !$0.policy.isReadableAfterFirstUnlock }
            classes = classes.filter { $0.value.policy.isReadableAfterFirstUnlock }
            current = current.filter { $0.key.isReadableAfterFirstUnlock }
            locks += 1
            if !byItself { orders += 1 }
            defer { roots = nil }
            return (roots, Array(gone))
        }

        /// Why the keys of a class that any root leads to are not held.
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
        vault: VaultIdentifier, log: LogKeys, roots: Roots, classes: [ClassKeys], facts: Facts
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
        state = Mutex(State(roots: roots, classes: named, current: current, facts: facts))
    }

    /// How often the ring was locked, for ``replace(with:unlessLockedSince:)``.
    var locks: Int { state.withLock { $0.locks } }

    /// How often it was told to lock: by anything but its time's end.
    var lockOrders: Int { state.withLock { $0.orders } }

    /// How often other keys took the place of these: what was wiped then is no sign of a lock.
    var replacements: Int { state.withLock { $0.replacements } }

    /// Whether this process is about to give the vault a new root: a keybag that the roots do not fit is then its
    /// own.
    var changesRoot: Bool { state.withLock { $0.changesRoot } }

    func changesRoot(_ isChanging: Bool) { state.withLock { $0.changesRoot = isChanging } }

    /// Takes over what another unlock of the same vault gave, and wipes what was held before. Nothing
    /// happens if the ring was locked since `locks` was read: a lock is never undone by what began
    /// before it. Nor when it was told to since `orders` was, nor when it was replaced since `replacements` was read, which may
    /// be by something newer.
    func replace(
        with other: KeyRing, unlessLockedSince locks: Int? = nil, unlessToldToLockSince orders: Int? = nil,
        unlessReplacedSince replacements: Int? = nil
    ) {
        var fresh = other.state.withLock { state in
            defer {
                state.roots = nil
                state.classes = [:]
                state.current = [:]
            }
            return state
        }
        let old = state.withLock { state in
            fresh.locks = state.locks
            fresh.orders = state.orders
            fresh.changesRoot = state.changesRoot
            fresh.replacements = state.replacements + 1
            if state.isWiped { return fresh }
            if let locks, state.locks != locks { return fresh }
            if let orders, state.orders != orders { return fresh }
            if let replacements, state.replacements != replacements || state.changesRoot { return fresh }
            defer { state = fresh }
            return state
        }
        Self.wipe(old.roots)
        for keys in old.classes.values { keys.wipe() }
    }

    deinit { wipeEverything() }

    /// Whether all that the unlock gave is held.
    var isUnlocked: Bool { state.withLock { $0.roots != nil } }

    /// What the unlock found beside the keys.
    var facts: Facts { state.withLock { $0.facts } }

    /// Says that another keybag is in use and cannot be looked into: nothing that depends on passphrases
    /// is answered until the next unlock, and nothing is written with keys of which it has a newer version or
    /// none. Does nothing when the ring was replaced since `replacements` was read.
    func markStale(_ keybag: Keybag, unlessReplacedSince replacements: Int? = nil) {
        state.withLock { state in
            if let replacements, state.replacements != replacements { return }
            state.facts.isStale = true
            state.facts.keybagGeneration = keybag.generation
            state.current = state.current.filter { policy, keys in
                keybag.newestVersion(of: policy.number, setTag: keys.setTag) == keys.version
            }
        }
    }

    /// Locks and marks stale, since the vault has another root than the one that is held; unless it was replaced
    /// since `replacements` was read, or is about to be.
    func loseRoot(_ keybag: Keybag, unlessReplacedSince replacements: Int) {
        let wiped = state.withLock { state -> (Roots?, [ClassKeys])? in
            guard state.replacements == replacements, !state.changesRoot else { return nil }
            return state.lock()
        }
        guard let wiped else { return }
        Self.wipe(wiped)
        markStale(keybag)
        state.withLock { $0.facts.hasLostRoot = true }
    }

    /// Why it is locked.
    var lockedError: TokenStorageError {
        let (hasLostRoot, isWiped) = state.withLock { ($0.facts.hasLostRoot, $0.isWiped) }
        if isWiped { return .file(.closed) }
        return hasLostRoot
            ? .file(.locked, .changedMeanwhile(.keys))
            : .file(.locked)
    }

    /// Wipes the roots and the when-unlocked classes; what is readable after first unlock stays. `byItself` because nobody
    /// used it for its time: who is about to unlock does.
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
        // First: whoever finds no keys from here on hears that it is closed.
        state.withLock { $0.isWiped = true }
        lock()
        let rest = state.withLock { state in
            defer {
                state.classes = [:]
                state.current = [:]
            }
            return Array(state.classes.values)
        }
        for keys in rest { keys.wipe() }
        log.wipe()
    }
}
