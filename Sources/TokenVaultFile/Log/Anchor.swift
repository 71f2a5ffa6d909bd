internal import Synchronization
internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// This device's record of the last state that it has seen of a vault, so that an older copy is noticed.
///
/// The anchor is two slots in a file of the state directory, written in turn. The file is synced only before
/// another file becomes the vault: an anchor that a crash takes back otherwise only protects a little less. A
/// missing, damaged or unwritable file is no error.
final class Anchor: Sendable {
    fileprivate struct State {
        var file: (any DiskFile)?
        var counter: UInt64 = 0
        /// The file's bytes when it was read or written last; each slot was authenticated then or is invalid.
        var known: [UInt8] = []
        /// The newest slot of these bytes.
        var newest: AnchorSlot?
        /// The keybag that the caller opened, and the names of its roots; `nil` where it opened none.
        var opened: (keybag: KeybagRecord, succession: Succession)?
        /// Whether the file cannot be written, so that the anchor stays where it is.
        var isStuck = false
        /// The buffer for reading.
        var bytes = [UInt8](repeating: 0, count: 2 * AnchorSlot.length)
    }

    private let directory: (any DiskDirectory)?
    private let name: String
    private let key: SymmetricKey
    private let state = Mutex(State())

    init(directory: (any DiskDirectory)?, vault: VaultIdentifier, key: SymmetricKey) {
        self.directory = directory
        name = Self.name(of: vault)
        self.key = key
    }

    /// Takes the names of the roots of a keybag that the caller opened. They count while that keybag is in use.
    func use(_ succession: Succession, of keybag: KeybagRecord) {
        state.withLock { $0.opened = (keybag, succession) }
    }

    /// Returns whether the keybag in use is the one that the caller opened.
    func hasOpened(_ keybag: KeybagRecord) -> Bool { state.withLock { $0.opened?.keybag == keybag } }

    static func name(of vault: VaultIdentifier) -> String { vault.hexadecimal + ".anchor" }

    /// Returns the newest slot that authenticates; `nil` when there is none. Throws `resourcesExhausted` when
    /// the system could not even look: that must not pass for no anchor.
    func read() throws(TokenStorageError) -> AnchorSlot? {
        guard let directory else { return nil }
        let result = state.withLock { state -> Result<AnchorSlot?, TokenStorageError> in
            if state.file == nil {
                do throws(SystemFailure) {
                    state.file = try directory.open(name, .readWrite)
                } catch {
                    if error.isExhaustion { return .failure(.system(error)) }
                    state.file = try? directory.open(name, .read)
                    state.isStuck = error.errno != .noSuchFileOrDirectory
                }
            }
            guard let file = state.file else { return .success(nil) }
            return .success(look(at: file, &state))
        }
        return try result.get()
    }

    /// Whether the last look or move showed that the anchor cannot be moved: later copies of the vault that
    /// are older than this device's are then not noticed.
    var isStuck: Bool { state.withLock { $0.isStuck } }

    /// Moves the anchor on to `log`. The log is durable up to there, and the caller holds its lock. Creates a
    /// missing file. Returns the anchor's present slot; `nil` when it could not be moved.
    @discardableResult
    func advance(to log: LogState) -> AnchorSlot? {
        guard let directory else { return nil }
        return state.withLock { state in
            if state.file == nil {
                state.file = (try? directory.open(name, .readWrite)) ?? create(synced: true)
            }
            guard let file = state.file else {
                state.isStuck = true
                return nil
            }
            // Another process may have moved it meanwhile; its counter must not be used again. If the anchor
            // is of another file, which is the vault by now, a copy that is still in use moves nothing.
            if let other = look(at: file, &state), other.epoch.isOfAnother(than: log.epoch) { return nil }
            let moved = try? write(state.slot(for: log), to: file, &state)
            state.isStuck = moved == nil
            return moved
        }
    }

    /// Moves the anchor on to the state that a reader has seen, unless the anchor differs from `expected` by
    /// now. The caller holds a shared lock of the vault's file, which keeps writers away; the anchor's own
    /// lock keeps other readers away. Returns the anchor's present slot; `nil` when it could not be moved.
    func advance(from expected: AnchorSlot?, toReadingOf log: LogState) -> AnchorSlot? {
        guard let directory else { return nil }
        return state.withLock { state in
            if state.file == nil {
                state.file = (try? directory.open(name, .readWrite)) ?? create(synced: false)
            }
            guard let file = state.file, (try? file.tryLock(.exclusive)) == true else { return nil }
            defer { file.unlock() }
            guard look(at: file, &state) == expected else { return nil }
            return try? write(state.slot(for: log), to: file, &state)
        }
    }

    /// Records durably that this device is about to put the file of `coming` in the vault's place. With
    /// `choosingRoots`, that file may be under any roots: the user asked for that. The caller holds the lock of the
    /// vault's file. Without an anchor there is nothing to record. Returns the anchor's present slot. Throws the error
    /// that prevents the record.
    @discardableResult
    func expect(
        _ coming: LogState, choosingRoots: Bool = false
    ) throws(TokenStorageError) -> AnchorSlot? {
        guard var slot = try read() else { return nil }
        slot.counter += 1
        slot.coming = coming.epoch
        let known = choosingRoots ? RootNames() : slot.roots
        slot.comingRoots = state.withLock { $0.names(of: coming.keybag, after: known) }
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

    /// Does the same as ``expect(_:choosingRoots:)``, for a file that takes the place of the one that `former` describes.
    /// Where a crash kept an earlier change of files from moving the anchor to that one, it moves first.
    /// Otherwise a crash of this change would leave a file that the anchor does not know.
    func expect(
        _ coming: LogState, choosingRoots: Bool = false, after former: LogState?, in place: VaultLocation
    ) throws(TokenStorageError) {
        if let former, try read()?.coming == former.epoch {
            try onDisk { () throws(SystemFailure) in
                try former.file.synchronize()
                try place.directory.synchronize()
            }
            advance(to: former)
        }
        try expect(coming, choosingRoots: choosingRoots)
    }

    private func write(
        _ slot: AnchorSlot, to file: any DiskFile, _ state: inout State
    ) throws(SystemFailure) -> AnchorSlot? {
        let authenticated = slot.authenticatedBytes()
        guard let code = Hash.keyed(authenticated, key: key, length: AnchorSlot.codeLength) else {
            return nil
        }
        state.counter = slot.counter
        let padding = [UInt8](repeating: 0, count: AnchorSlot.length - authenticated.count - code.count)
        let (bytes, place) = (authenticated + code + padding, Int(slot.counter % 2) * AnchorSlot.length)
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

    /// Returns the newest slot that authenticates; `nil` when there is none. Unchanged bytes are not
    /// authenticated again: most commits find the bytes of the previous one.
    private func look(at file: any DiskFile, _ state: inout State) -> AnchorSlot? {
        guard let count = try? file.read(into: &state.bytes, at: 0) else { return nil }
        if count < state.bytes.count || !isSame(state.bytes, state.known) {
            state.known = Array(state.bytes[..<count])
            state.newest = newest(in: state.known)
        }
        if let newest = state.newest { state.counter = max(state.counter, newest.counter) }
        return state.newest
    }

    private func newest(in bytes: [UInt8]) -> AnchorSlot? {
        var newest: AnchorSlot?
        for start in [0, AnchorSlot.length] where bytes.count >= start + AnchorSlot.length {
            let slotBytes = Array(bytes[start..<start + AnchorSlot.length])
            let authenticated = Array(slotBytes[0..<AnchorSlot.authenticatedLength])
            let codeEnd = AnchorSlot.authenticatedLength + AnchorSlot.codeLength
            guard let code = Hash.keyed(authenticated, key: key, length: AnchorSlot.codeLength),
                constantTimeEqual(code, Array(slotBytes[AnchorSlot.authenticatedLength..<codeEnd])),
                isAllZero(slotBytes, in: codeEnd..<slotBytes.count),
                let slot = try? AnchorSlot(decoding: slotBytes)
            else { continue }
            if slot.counter > newest?.counter ?? 0 { newest = slot }
        }
        return newest
    }
}

extension Anchor.State {
    /// Returns the slot that follows the newest, for a log that has come as far as `log`.
    fileprivate func slot(for log: LogState) -> AnchorSlot {
        let known = newest?.roots(in: log.epoch) ?? RootNames()
        return AnchorSlot(counter: counter + 1, log, roots: names(of: log.keybag, after: known))
    }

    /// Returns the names of the roots of `keybag` where the caller opened that, and they follow the known ones; else
    /// the known ones. A process that opened the vault before a key rotation or a restore takes nothing back.
    fileprivate func names(of keybag: KeybagRecord, after known: RootNames) -> RootNames {
        guard let opened, opened.keybag == keybag else { return known }
        return opened.succession.names(after: known)
    }
}

extension Epoch {
    /// Returns whether this epoch, which an anchor names, did not lead to `epoch`: it is a later one, or one
    /// beside it.
    func isOfAnother(than epoch: Epoch) -> Bool {
        number > epoch.number || (number == epoch.number && self != epoch)
    }
}
