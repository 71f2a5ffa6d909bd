internal import Synchronization
internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// This device's record of the last state that it has seen of a vault, so that an older copy is noticed.
///
/// The anchor is two slots in a file of the state directory, written in turn. The file is synced only before
/// another file becomes the vault: an anchor that a crash takes back otherwise only protects a little less. A
/// missing, damaged or unwritable file is no error. A whole one under another log key is: key rotations keep that key, so the
/// vault's file is not the one that this device knows.
final class Anchor: Sendable {
    fileprivate struct State {
        var file: (any DiskFile)?
        var counter: UInt64 = 0
        /// The file's bytes when it was read or written last; each slot was authenticated then or is invalid.
        var known: [UInt8] = []
        /// The newest slot of these bytes.
        var newest: AnchorSlot?
        /// Whether the newest whole slot is under another log key.
        var isUnderOtherKey = false
        /// Whether the file could be opened for reading only.
        var isReadOnly = false
        /// Whether the file cannot be written, so that the anchor stays where it is.
        var isStuck = false
        /// The buffer for reading.
        var bytes = [UInt8](repeating: 0, count: 2 * AnchorSlot.length)

        /// Forgets the open file once its name is gone. Other processes use the file that has the name now.
        mutating func forgetRemovedFile() {
            guard let open = file, (try? open.attributes().links) == 0 else { return }
            (file, known, newest) = (nil, [], nil)
            (isReadOnly, isUnderOtherKey) = (false, false)
        }
    }

    private let directory: (any DiskDirectory)?
    private let name: String
    private let key: SymmetricKey
    private let state = Mutex(State())
    /// A keybag that the caller opened, and the names of its roots.
    struct Opening: Sendable {
        let keybag: KeybagRecord
        let succession: Succession
    }

    /// The keybag that the caller opened last; `nil` where it opened none.
    private let opened = Mutex<Opening?>(nil)

    init(directory: (any DiskDirectory)?, vault: VaultIdentifier, key: SymmetricKey) {
        self.directory = directory
        name = Self.name(of: vault)
        self.key = key
    }

    /// Takes the names of the roots of a keybag that the caller opened. They count while that keybag is in use. Returns what
    /// was opened before.
    @discardableResult
    func use(_ succession: Succession, of keybag: KeybagRecord) -> Opening? {
        opened.withLock { opened in
            defer { opened = Opening(keybag: keybag, succession: succession) }
            return opened
        }
    }

    /// Takes what was opened before `keybag`, which was not put in use after all.
    func restore(_ former: Opening?, insteadOf keybag: KeybagRecord) {
        opened.withLock { if $0?.keybag == keybag { $0 = former } }
    }

    /// Returns whether the keybag in use is the one that the caller opened.
    func hasOpened(_ keybag: KeybagRecord) -> Bool { opened.withLock { $0?.keybag == keybag } }

    /// Returns whether `slot` says all there is to say of a log that has come as far as `log`.
    func isCovered(_ log: LogState, by slot: AnchorSlot) -> Bool {
        let known = slot.roots(in: log.epoch)
        return slot.covers(log) && names(of: log.keybag, after: known) == known
    }

    /// Returns the names of the roots of `keybag` where the caller opened that, and they follow the known ones; else
    /// the known ones. A process that opened the vault before a key rotation or a restore takes nothing back.
    private func names(of keybag: KeybagRecord, after known: RootNames) -> RootNames {
        opened.withLock { opened in
            guard let opened, opened.keybag == keybag else { return known }
            return opened.succession.names(after: known)
        }
    }

    static func name(of vault: VaultIdentifier) -> String { vault.hexadecimal + ".anchor" }

    /// Whether the last look found the newest slot under another log key: the vault that this device knows has other keys.
    var isUnderOtherKey: Bool { state.withLock { $0.isUnderOtherKey } }

    /// Returns the newest slot that authenticates; `nil` when there is none. Throws `resourcesExhausted` when
    /// the system could not even look: that must not pass for no anchor. Throws `forked` when the newest is under another
    /// log key, unless the user is `choosing` the file.
    func read(choosing: Bool = false) throws(TokenStorageError) -> AnchorSlot? {
        guard let directory else { return nil }
        let result = state.withLock { state -> Result<AnchorSlot?, TokenStorageError> in
            state.forgetRemovedFile()
            if state.file == nil {
                do throws(SystemFailure) {
                    state.file = try directory.open(name, .readWrite)
                } catch {
                    if error.isExhaustion { return .failure(.system(error)) }
                    state.file = try? directory.open(name, .read)
                    state.isReadOnly = state.file != nil
                    state.isStuck = error.errno != .noSuchFileOrDirectory
                }
            }
            guard let file = state.file else { return .success(nil) }
            let newest = look(at: file, &state)
            if state.isUnderOtherKey, !choosing { return .failure(.file(.forked, .ancestry(.unrelatedKeys))) }
            return .success(newest)
        }
        return try result.get()
    }

    /// Whether the last look or move showed that the anchor cannot be moved. This device then does not notice
    /// later copies of the vault that are older than the vault that it has seen.
    var isStuck: Bool { state.withLock { $0.isStuck } }

    /// The outcome of a writer's move of the anchor.
    enum Move {
        /// The anchor's present slot.
        case moved(AnchorSlot)
        /// The anchor could not be moved, or there is no place for one.
        case stuck
        /// The anchor is at a commit of another file, which was the vault meanwhile. It was not moved.
        case overtaken
    }

    /// Moves the anchor on to `log`. The log is durable up to there, and the caller holds its lock. Creates a
    /// missing file. The writer of `log` has seen the slot `seen`.
    ///
    /// A file under another name has another lock. So a file that was the vault for a while may have got commits, which
    /// this device acknowledged and this log does not have.
    @discardableResult
    func advance(to log: LogState, after seen: AnchorSlot?) -> Move {
        guard let directory else { return .stuck }
        return state.withLock { state in
            guard let file = fileForWriting(in: directory, &state, synced: true) else {
                state.isStuck = true
                return .stuck
            }
            // Another process may have moved the anchor meanwhile, and its counter must not be used again.
            if let other = look(at: file, &state), other != seen, !other.isInPast(of: log) {
                return .overtaken
            }
            let moved = try? write(slot(for: log, after: state), to: file, &state)
            state.isStuck = moved == nil
            return moved.map(Move.moved) ?? .stuck
        }
    }

    /// Moves the anchor on to the state that a reader has seen, unless the anchor differs from `expected` by
    /// now. The caller holds a shared lock of the vault's file, which keeps writers away; the anchor's own
    /// lock keeps other readers away. Returns the anchor's present slot; `nil` when it could not be moved.
    func advance(from expected: AnchorSlot?, toReadingOf log: LogState) -> AnchorSlot? {
        guard let directory else { return nil }
        return state.withLock { state in
            guard let file = fileForWriting(in: directory, &state, synced: false),
                (try? file.tryLock(.exclusive)) == true
            else { return nil }
            defer { file.unlock() }
            guard look(at: file, &state) == expected, !state.isUnderOtherKey else { return nil }
            let moved = try? write(slot(for: log, after: state), to: file, &state)
            state.isStuck = moved == nil
            return moved
        }
    }

    /// Records durably that this device is about to put the file of `coming` in the vault's place. With
    /// `choosingRoots`, that file may be under any roots: the user asked for that. The caller holds the lock of the
    /// vault's file, and has seen the slot `seen`. Without an anchor there is nothing to record. Returns the anchor's
    /// present slot. Throws `conflict` where the anchor moved meanwhile, and the error that prevents the record.
    func expect(
        _ coming: LogState, choosingRoots: Bool = false, seen: AnchorSlot?
    ) throws(TokenStorageError) -> AnchorSlot? {
        guard var slot = try read(choosing: choosingRoots) else { return nil }
        guard slot == seen else { throw .tookPlace }
        slot.counter += 1
        slot.coming = coming.epoch
        let known = choosingRoots ? RootNames() : slot.roots
        slot.comingRoots = names(of: coming.keybag, after: known)
        let expecting = slot
        let result = state.withLock { state -> Result<AnchorSlot?, TokenStorageError> in
            guard let file = state.file else { return .success(nil) }
            do throws(SystemFailure) {
                let moved = try write(expecting, to: file, &state)
                try file.synchronize()
                return .success(moved)
            } catch {
                return .failure(.system(error))
            }
        }
        return try result.get()
    }

    /// Does the same as ``expect(_:choosingRoots:seen:)``, for a file that takes the place of the one that `former`
    /// describes. Where a crash kept an earlier change of files from moving the anchor to that one, it moves first.
    /// Otherwise a crash of this change would leave a file that the anchor does not know.
    func expect(
        _ coming: LogState, choosingRoots: Bool = false, seen: AnchorSlot?, after former: LogState?,
        in place: VaultLocation
    ) throws(TokenStorageError) -> AnchorSlot? {
        var seen = seen
        if let former, let slot = seen, slot.coming == former.epoch {
            try onDisk { () throws(SystemFailure) in
                try former.file.synchronize()
                try place.directory.synchronize()
            }
            switch advance(to: former, after: slot) {
            case .moved(let slot): seen = slot
            case .stuck: break
            case .overtaken: throw .tookPlace
            }
        }
        return try expect(coming, choosingRoots: choosingRoots, seen: seen)
    }

    private func write(
        _ slot: AnchorSlot, to file: any DiskFile, _ state: inout State
    ) throws(SystemFailure) -> AnchorSlot? {
        guard let bytes = slot.encoded(under: key) else { return nil }
        state.counter = slot.counter
        let place = Int(slot.counter % 2) * AnchorSlot.length
        var known = state.known
        state.known = []
        if known.count < 2 * AnchorSlot.length {
            // A slot that was cut off is invalid: nothing written behind it makes it whole.
            known = [UInt8](repeating: 0, count: 2 * AnchorSlot.length)
            try file.write(known, at: 0)
        }
        try file.write(bytes, at: place)
        known.replaceSubrange(place..<place + bytes.count, with: bytes)
        state.known = known
        state.newest = slot
        return slot
    }

    /// Returns the anchor's present slot. Throws `duplicateVault` when it is of another file of this vault,
    /// which became the vault after a file of `epoch` was opened. Writes to this file would never be read.
    func read(requiringNotSettledAgainst epoch: Epoch) throws(TokenStorageError) -> AnchorSlot? {
        let anchored = try read()
        guard let anchored, anchored.epoch.isOfAnother(than: epoch) else { return anchored }
        throw .file(.duplicateVault, .ancestry(.becameElsewhere))
    }

    /// Returns the file, opened for writing as soon as it can be, and created where there is none. Callers read the
    /// anchor when they took their lock, so a removed file is not looked for again. That look would take a hundredth of
    /// the time of a store.
    private func fileForWriting(
        in directory: any DiskDirectory, _ state: inout State, synced: Bool
    ) -> (any DiskFile)? {
        guard state.file == nil || state.isReadOnly else { return state.file }
        if let file = try? directory.open(name, .readWrite) {
            state.file = file
            state.isReadOnly = false
        } else if state.file == nil {
            state.file = create(synced: synced)
        }
        return state.file
    }

    /// Returns the slot that follows the newest, for a log that has come as far as `log`.
    private func slot(for log: LogState, after state: State) -> AnchorSlot {
        let known = state.newest?.roots(in: log.epoch) ?? RootNames()
        return AnchorSlot(counter: state.counter + 1, log, roots: names(of: log.keybag, after: known))
    }

    /// Creates the file, with room for both slots; with `synced`, durable under its name.
    private func create(synced: Bool) -> (any DiskFile)? {
        guard let directory, let file = try? directory.open(name, .create) else { return nil }
        do {
            try file.write([UInt8](repeating: 0, count: 2 * AnchorSlot.length), at: 0)
            guard synced else { return file }
            try file.synchronize()
            try directory.synchronize()
        } catch {
            return nil
        }
        return file
    }

    /// Returns the newest slot where it authenticates. Unchanged bytes are not
    /// authenticated again: most commits find the bytes of the previous one.
    private func look(at file: any DiskFile, _ state: inout State) -> AnchorSlot? {
        guard let count = try? file.read(into: &state.bytes, at: 0) else { return nil }
        if count < state.bytes.count || !isSame(state.bytes, state.known) {
            state.known = Array(state.bytes[..<count])
            readSlots(&state)
        }
        return state.newest
    }

    /// Finds the newest whole slot in the bytes of the file.
    private func readSlots(_ state: inout State) {
        state.newest = nil
        state.isUnderOtherKey = false
        var newest: AnchorSlot?
        for start in [0, AnchorSlot.length] where state.known.count >= start + AnchorSlot.length {
            let bytes = Array(state.known[start..<start + AnchorSlot.length])
            guard AnchorSlot.isWhole(bytes), let slot = try? AnchorSlot(decoding: bytes),
                slot.counter > newest?.counter ?? 0
            else { continue }
            let codeStart = AnchorSlot.authenticatedLength
            guard let code = Hash.keyed(Array(bytes[..<codeStart]), key: key, length: AnchorSlot.codeLength)
            else { continue }
            newest = slot
            let isOurs = constantTimeEqual(
                code, Array(bytes[codeStart..<codeStart + AnchorSlot.codeLength]))
            state.isUnderOtherKey = !isOurs
        }
        state.counter = max(state.counter, newest?.counter ?? 0)
        if !state.isUnderOtherKey { state.newest = newest }
    }
}

extension AnchorSlot {
    /// Returns whether `log` shows that it has the slot's commit, or is the file that the slot announces.
    fileprivate func isInPast(of log: LogState) -> Bool {
        coming == log.epoch || head == log.head
            || (epoch == log.epoch && log.trail.contains(Ancestry.Commit(sequence: sequence, head: head)))
    }
}

extension TokenStorageError {
    /// The error for a file that would replace the vault, or be written to as the vault, while another one is that.
    static let tookPlace = file(.conflict, .ancestry(.tookPlace))
}

extension Epoch {
    /// Returns whether this epoch, which an anchor names, did not lead to `epoch`: it is a later one, or one
    /// beside it.
    func isOfAnother(than epoch: Epoch) -> Bool {
        number > epoch.number || (number == epoch.number && self != epoch)
    }
}
