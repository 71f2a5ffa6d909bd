internal import Synchronization
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// What this device remembers of how far a vault had come, so that an older copy is noticed.
///
/// Two slots in a file of the state directory, written in turn and never synced: an anchor that a crash
/// takes back only protects a little less. Missing, damaged or unwritable is no error.
final class Anchor: Sendable {
    private struct State {
        var file: (any DiskFile)?
        var counter: UInt64 = 0
        /// What was in the file when it was read or written last, each slot of which was authenticated then or is none.
        var known: [UInt8] = []
        /// The newest slot of that.
        var newest: AnchorSlot?
        /// What is read.
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

    static func name(of vault: VaultIdentifier) -> String { vault.hexadecimal + ".anchor" }

    /// The newest slot that authenticates; `nil` when there is none. Throws `resourcesExhausted` when the
    /// system could not even look: that must not pass for no anchor.
    func read() throws(TokenStorageError) -> AnchorSlot? {
        guard let directory else { return nil }
        let result = state.withLock { state -> Result<AnchorSlot?, TokenStorageError> in
            if state.file == nil {
                do throws(SystemFailure) {
                    state.file = try directory.open(name, .readWrite)
                } catch {
                    if error.isExhaustion { return .failure(.system(error)) }
                    state.file = try? directory.open(name, .read)
                }
            }
            guard let file = state.file else { return .success(nil) }
            return .success(look(at: file, &state))
        }
        return try result.get()
    }

    /// Moves the anchor on. The vault's log is durable up to there, and the caller holds its lock.
    /// Creates the file when it is missing.
    func advance(epoch: Epoch, sequence: UInt64, head: Digest, keybagGeneration: UInt64) {
        guard let directory else { return }
        state.withLock { state in
            if state.file == nil { state.file = (try? directory.open(name, .readWrite)) ?? create() }
            guard let file = state.file else { return }
            // Another process may have moved it meanwhile; its counter must not be used again.
            // Of another file, which is the vault by now: a copy that is still in use moves nothing.
            if let other = look(at: file, &state), other.epoch.isOfAnother(than: epoch) { return }
            state.counter += 1
            let slot = AnchorSlot(
                counter: state.counter, epoch: epoch, sequence: sequence, head: head,
                keybagGeneration: keybagGeneration)
            let authenticated = slot.authenticatedBytes()
            guard let code = Hash.keyed(authenticated, key: key, length: AnchorSlot.codeLength) else {
                return
            }
            let padding = [UInt8](repeating: 0, count: AnchorSlot.length - authenticated.count - code.count)
            let (bytes, place) = (authenticated + code + padding, Int(state.counter % 2) * AnchorSlot.length)
            guard (try? file.write(bytes, at: place)) != nil, state.known.count >= place + bytes.count else {
                return state.known = []
            }
            state.known.replaceSubrange(place..<place + bytes.count, with: bytes)
            state.newest = slot
        }
    }

    /// Throws `duplicateVault` when the anchor is of another file of this vault, which has become the vault since a file
    /// in the life `epoch` was opened: nobody would ever read what is written there.
    func requireNotSettled(against epoch: Epoch) throws(TokenStorageError) {
        guard let anchored = try read(), anchored.epoch.isOfAnother(than: epoch) else { return }
        throw .file(
            .duplicateVault, underlying: "another file has become the vault meanwhile",
            advice: "open the vault where it is now; to have this file, settle it with \"vaultctl adopt\"")
    }

    /// The file, with room for both slots, durable under its name.
    private func create() -> (any DiskFile)? {
        guard let directory, let file = try? directory.open(name, .create) else { return nil }
        do {
            try file.write([UInt8](repeating: 0, count: 2 * AnchorSlot.length), at: 0)
            try file.synchronize()
            try directory.synchronize()
        } catch {
            return nil
        }
        return file
    }

    /// The newest slot that authenticates; `nil` when there is none. Bytes that are as they were are not authenticated again:
    /// most commits find what the one before wrote.
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

extension Epoch {
    /// Whether this, which an anchor tells, is no life that the life `epoch` led to: a later one, or one beside it.
    fileprivate func isOfAnother(than epoch: Epoch) -> Bool {
        number > epoch.number || (number == epoch.number && self != epoch)
    }
}
