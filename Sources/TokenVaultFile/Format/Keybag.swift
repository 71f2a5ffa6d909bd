internal import TokenVaultCore
internal import TokenVaultCrypto

/// The keybag: the vault's slots and the class keys that they lead to. It has bytes and values only; the code
/// in `Keys/` wraps and unwraps them.
struct Keybag: Equatable, Sendable {
    var vault: VaultIdentifier
    /// The generation, which grows by one with every change of the keybag.
    var generation: UInt64
    /// The number of the next slot.
    var nextSlot: UInt32
    /// The number of replaced values of an item that compaction keeps.
    var keptValues: UInt16 = 0
    var slots: [Slot]
    /// The portable set first, then one for each device.
    var sets: [ClassSet]
    /// The devices that were removed, the last one at the end, so that a merge with an older copy does not
    /// bring them back.
    private(set) var removedDevices: [RemovedDevice] = []

    /// An enrolment that ended. The same device may be enrolled again.
    struct RemovedDevice: Hashable, Sendable {
        var device: [UInt8]
        /// The date of the enrolment, in milliseconds since 1970.
        var enrolled: Int64

        func isOf(_ set: ClassSet) -> Bool { set.device == device && set.enrolled == enrolled }

        /// Whether the removal also covers the enrolment of `set`, which may be an earlier one on another branch.
        func covers(_ set: ClassSet) -> Bool { set.device == device && set.enrolled <= enrolled }
    }
    /// The record of the roots that key rotations replaced.
    var formerRoots = FormerRoots()

    /// Keys that stand for former roots, the newest first, sealed under the keybag's own roots: one list each for R and
    /// for A. Both are empty in a vault whose keys were never rotated.
    struct FormerRoots: Equatable, Sendable {
        var all: [UInt8] = []
        var holder: [UInt8] = []

        static let most = 8

        /// The number of former roots.
        var count: Int {
            all.isEmpty ? 0 : (all.count - AuthenticatedEncryption.overhead) / SymmetricKey.length
        }

        static func length(_ count: Int) -> Int {
            count == 0 ? 0 : count * SymmetricKey.length + AuthenticatedEncryption.overhead
        }
    }
    /// The log key, wrapped.
    var logKey: [UInt8]
    /// The code that authenticates everything above under the root, for holders of the root.
    var rootCode: [UInt8] = []
    /// The code that authenticates everything above under the after-first-unlock root, for every holder.
    var holderCode: [UInt8] = []

    /// An unlock method.
    struct Slot: Equatable, Sendable {
        var identifier: UInt32
        var kind: Kind
        var scope: Scope
        /// The creation date, in milliseconds since 1970.
        var created: Int64
        /// Argon2id's cost; zero for a kind that needs none.
        var cost: PasswordHashCost
        var salt: [UInt8]
        /// The commitment, which tells a wrong passphrase from a damaged slot, and binds the slot to one key.
        var commitment: [UInt8]
        /// The roots, sealed.
        var wrapped: [UInt8]

        enum Kind: UInt8, Sendable { case passphrase = 1, keyFile = 2, secretService = 3, recovery = 4 }
        enum Scope: UInt8, Sendable { case all = 1, afterFirstUnlock = 2 }
    }

    /// The class keys for one device, or the portable ones.
    struct ClassSet: Hashable, Sendable {
        /// The device's identifier; 16 zero bytes for the portable set.
        var device: [UInt8]
        /// The date of enrolment, in milliseconds since 1970; zero for the portable set.
        var enrolled: Int64 = 0
        /// The roots that the set is wrapped under when they are not the keybag's own. The vault got new
        /// roots where the device's key was not available.
        var olderRoots: OlderRoots?
        var keys: [WrappedClass]

        static let portable = [UInt8](repeating: 0, count: 16)
    }

    /// Earlier roots, each sealed under its successor.
    struct OlderRoots: Hashable, Sendable {
        var all: [UInt8]
        var holder: [UInt8]
        /// The sealed passcode root; empty when the vault has no passphrase.
        var passcode: [UInt8]
    }

    /// One class's metadata key and secret key, sealed together.
    struct WrappedClass: Hashable, Sendable {
        var policy: UInt8
        var version: UInt32
        var wrapped: [UInt8]
    }

    static let magic = Array("TKNVAULT".utf8)
    /// The offset of the vault's identifier.
    static let vaultOffset = 16
    /// The most that ``keptValues`` may be.
    static let mostKeptValues = 100
    static let maximumSlots = 16
    static let maximumPassphrases = 8
    static let maximumSets = 8
    static let mostRemovedDevices = 16
    /// The most that trying every passphrase slot may cost: passes times bytes, over all slots. It equals
    /// eight slots of four times libsodium's MODERATE; a hostile file cannot ask for hours.
    static let maximumWork: UInt64 = 8 * 12 * (256 << 20)
    static let maximumClasses = 16
    static let codeLength = 32
    static let commitmentLength = 32
    static let wrappedClassLength = 2 * SymmetricKey.length + AuthenticatedEncryption.overhead
    static let wrappedLogKeyLength = SymmetricKey.length + AuthenticatedEncryption.overhead
    static let wrappedRootLength = SymmetricKey.length + AuthenticatedEncryption.overhead
    private static let checksumLength = 32

    /// Returns the bytes that both codes authenticate.
    func authenticatedBytes() -> [UInt8] {
        var writer = ByteWriter(reserving: 2_048)
        writer.append(Self.magic)
        writer.append(VaultFormat.version)
        writer.append(keptValues)
        writer.append(UInt16(removedDevices.count))
        writer.append(UInt16(formerRoots.count))
        writer.append(vault.bytes)
        writer.append(generation)
        writer.append(nextSlot)
        writer.append(UInt16(slots.count))
        for slot in slots {
            writer.append(slot.identifier)
            writer.append(slot.kind.rawValue)
            writer.append(slot.scope.rawValue)
            writer.append(slot.created)
            writer.append(slot.cost.passes)
            writer.append(slot.cost.memory)
            writer.append(slot.salt)
            writer.append(slot.commitment)
            writer.append(UInt16(slot.wrapped.count))
            writer.append(slot.wrapped)
        }
        writer.append(UInt16(sets.count))
        for set in sets {
            writer.append(set.device)
            writer.append(set.enrolled)
            writer.append(set.olderRoots.map { $0.passcode.isEmpty ? 1 : 2 } ?? UInt8(0))
            if let older = set.olderRoots { writer.append(older.all + older.holder + older.passcode) }
            writer.append(UInt8(set.keys.count))
            for key in set.keys {
                writer.append(key.policy)
                writer.append(key.version)
                writer.append(key.wrapped)
            }
        }
        for removed in removedDevices {
            writer.append(removed.device)
            writer.append(removed.enrolled)
        }
        writer.append(formerRoots.all + formerRoots.holder)
        writer.append(logKey)
        return writer.bytes
    }

    /// Removes a device's set, and remembers that it was removed.
    mutating func removeDevice(_ set: ClassSet) {
        sets.removeAll { $0.device == set.device }
        remember(removed: [RemovedDevice(device: set.device, enrolled: set.enrolled)])
    }

    /// Returns whether an enrolment ended, or one that follows it.
    func hasRemoved(_ set: ClassSet) -> Bool { removedDevices.contains { $0.covers(set) } }

    /// Remembers enrolments that ended. Beyond ``mostRemovedDevices`` the oldest are forgotten; at least half of
    /// those that stay were remembered before.
    mutating func remember(removed devices: [RemovedDevice]) {
        var added: [RemovedDevice] = []
        for one in devices where !sets.contains(where: one.isOf) {
            // A removal covers those of the same device before it.
            guard
                !(removedDevices + added).contains(where: {
                    $0.device == one.device && $0.enrolled >= one.enrolled
                })
            else { continue }
            removedDevices.removeAll { $0.device == one.device }
            added.removeAll { $0.device == one.device }
            added.append(one)
        }
        let most = Self.mostRemovedDevices
        removedDevices = removedDevices.suffix(max(most / 2, most - added.count))
        removedDevices += added.suffix(most - removedDevices.count)
    }

    /// Returns one copy as it stands in the file, ``VaultFormat/keybagLength`` bytes; `nil` when the contents
    /// have outgrown it, or a bound that readers insist on.
    func encoded() -> [UInt8]? {
        uncheckedEncoding().flatMap { (try? Keybag(decoding: $0)) == self ? $0 : nil }
    }

    /// Returns the bytes of one copy, whether or not readers accept them; `nil` when they have outgrown it.
    func uncheckedEncoding() -> [UInt8]? {
        var bytes = authenticatedBytes() + rootCode + holderCode
        let room = VaultFormat.keybagLength - Self.checksumLength
        guard bytes.count <= room else { return nil }
        bytes += repeatElement(0, count: room - bytes.count)
        return bytes + Hash.digest(bytes, length: Self.checksumLength)
    }

    /// Returns the checksum of an encoded copy, which names it in the log.
    static func digest(of copy: [UInt8]) -> Digest { Digest(endOf: copy) }

    /// Decodes the keybag of one copy. Throws `wrongMagic`, `wrongChecksum`, `newerVersion`, or the error of
    /// its contents.
    init(decoding copy: [UInt8]) throws(FormatError) {
        guard copy.count == VaultFormat.keybagLength else { throw .tooShort }
        guard copy.starts(with: Self.magic) else { throw .wrongMagic }
        let end = copy.count - Self.checksumLength
        guard Digest(of: copy, in: 0..<end) == Self.digest(of: copy) else { throw .wrongChecksum }
        var reader = ByteReader(copy, in: Self.magic.count..<end)
        guard try reader.integer(UInt16.self) == VaultFormat.version else { throw .newerVersion }
        keptValues = try reader.integer(UInt16.self)
        let removedCount = Int(try reader.integer(UInt16.self))
        let formerCount = Int(try reader.integer(UInt16.self))
        guard keptValues <= Self.mostKeptValues, removedCount <= Self.mostRemovedDevices,
            formerCount <= FormerRoots.most
        else { throw .newerVersion }
        vault = VaultIdentifier(bytes: try reader.bytes(VaultIdentifier.length))
        generation = try reader.integer(UInt64.self)
        nextSlot = try reader.integer(UInt32.self)
        guard generation <= VaultFormat.largestSequence else { throw .outOfBounds }
        let slotCount = Int(try reader.integer(UInt16.self))
        guard (1...Self.maximumSlots).contains(slotCount) else { throw .outOfBounds }
        var slots: [Slot] = []
        for _ in 0..<slotCount {
            let slot = try Slot(&reader)
            guard slot.identifier < nextSlot, !slots.contains(where: { $0.identifier == slot.identifier })
            else { throw .outOfBounds }
            slots.append(slot)
        }
        let work = slots.reduce(UInt64(0)) { $0 + UInt64($1.cost.passes) * $1.cost.memory }
        guard work <= Self.maximumWork,
            slots.count(where: { $0.kind == .passphrase }) <= Self.maximumPassphrases
        else { throw .outOfBounds }
        self.slots = slots
        let setCount = Int(try reader.integer(UInt16.self))
        guard (1...Self.maximumSets).contains(setCount) else { throw .outOfBounds }
        var sets: [ClassSet] = []
        for _ in 0..<setCount {
            let set = try ClassSet(&reader)
            guard !sets.contains(where: { $0.device == set.device }) else { throw .outOfBounds }
            guard set.device != ClassSet.portable || set.olderRoots == nil else { throw .outOfBounds }
            sets.append(set)
        }
        self.sets = sets
        for _ in 0..<removedCount {
            let removed = RemovedDevice(
                device: try reader.bytes(16), enrolled: try reader.integer(Int64.self))
            guard !removedDevices.contains(removed), !sets.contains(where: removed.isOf),
                VaultFormat.isDate(removed.enrolled)
            else { throw .outOfBounds }
            removedDevices.append(removed)
        }
        let length = FormerRoots.length(formerCount)
        formerRoots = FormerRoots(all: try reader.bytes(length), holder: try reader.bytes(length))
        logKey = try reader.bytes(Self.wrappedLogKeyLength)
        rootCode = try reader.bytes(Self.codeLength)
        holderCode = try reader.bytes(Self.codeLength)
        guard isAllZero(try reader.bytes(reader.remaining)) else { throw .outOfBounds }
    }

    init(
        vault: VaultIdentifier, generation: UInt64, nextSlot: UInt32, slots: [Slot], sets: [ClassSet],
        logKey: [UInt8]
    ) {
        self.vault = vault
        self.generation = generation
        self.nextSlot = nextSlot
        self.slots = slots
        self.sets = sets
        self.logKey = logKey
    }
}

extension Keybag.Slot {
    /// The longest sealed root: two keys.
    private static let maximumWrapped = 2 * SymmetricKey.length + AuthenticatedEncryption.overhead

    fileprivate init(_ reader: inout ByteReader) throws(FormatError) {
        identifier = try reader.integer(UInt32.self)
        guard let kind = Kind(rawValue: try reader.integer(UInt8.self)) else { throw .newerVersion }
        guard let scope = Scope(rawValue: try reader.integer(UInt8.self)) else { throw .newerVersion }
        self.kind = kind
        self.scope = scope
        created = try reader.integer(Int64.self)
        guard VaultFormat.isDate(created) else { throw .outOfBounds }
        cost = PasswordHashCost(
            passes: try reader.integer(UInt32.self), memory: try reader.integer(UInt64.self))
        // A file may not make the program that opens it work for hours or use all its memory.
        guard cost.passes <= PasswordHashCost.maximum.passes,
            cost.memory <= PasswordHashCost.maximum.memory
        else { throw .outOfBounds }
        switch kind {
        case .passphrase: guard cost.passes >= 1, cost.memory >= 8_192 else { throw .outOfBounds }
        case .keyFile, .secretService, .recovery:
            guard cost.passes == 0, cost.memory == 0 else { throw .outOfBounds }
        }
        salt = try reader.bytes(PasswordHash.saltLength)
        commitment = try reader.bytes(Keybag.commitmentLength)
        let count = Int(try reader.integer(UInt16.self))
        guard count >= SymmetricKey.length + AuthenticatedEncryption.overhead, count <= Self.maximumWrapped
        else { throw .outOfBounds }
        wrapped = try reader.bytes(count)
    }
}

extension Keybag.ClassSet {
    fileprivate init(_ reader: inout ByteReader) throws(FormatError) {
        device = try reader.bytes(16)
        enrolled = try reader.integer(Int64.self)
        guard VaultFormat.isDate(enrolled) else { throw .outOfBounds }
        let older = try reader.integer(UInt8.self)
        switch older {
        case 0: olderRoots = nil
        case 1, 2:
            let length = Keybag.wrappedRootLength
            olderRoots = Keybag.OlderRoots(
                all: try reader.bytes(length), holder: try reader.bytes(length),
                passcode: older == 2 ? try reader.bytes(length) : [])
        default: throw .newerVersion
        }
        let count = Int(try reader.integer(UInt8.self))
        guard count <= Keybag.maximumClasses else { throw .outOfBounds }
        keys = []
        for _ in 0..<count {
            keys.append(
                Keybag.WrappedClass(
                    policy: try reader.integer(UInt8.self), version: try reader.integer(UInt32.self),
                    wrapped: try reader.bytes(Keybag.wrappedClassLength)))
        }
    }
}
