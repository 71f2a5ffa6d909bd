internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// A whole copy of the keybag: its bytes, and what they say.
struct KeybagCopy: Sendable {
    /// 0 for the first copy in the file, 1 for the second.
    let index: Int
    let bytes: [UInt8]
    let keybag: Keybag

    /// The record by which a log names this copy.
    var record: KeybagRecord {
        KeybagRecord(generation: keybag.generation, digest: Keybag.digest(of: bytes))
    }

    /// Returns whether the log's `record` names this copy.
    func isNamed(by record: KeybagRecord) -> Bool { self.record == record }

    /// Returns whether the copy is one newer than the copy that `record` names. A change that a crash cut short, and
    /// that was never acknowledged, leaves such a copy. The same change of another file of the vault leaves one, too.
    /// Only the named copy opens the vault.
    func isNext(after record: KeybagRecord) -> Bool { keybag.generation == record.generation + 1 }
}

/// The two copies of the keybag at the front of the file.
struct KeybagCopies: Sendable {
    /// Each copy's bytes, and its keybag or the error of its format.
    let copies: [(bytes: [UInt8], keybag: Result<Keybag, FormatError>)]

    /// Reads both copies from `file`. Throws as ``init(front:)``, and the system's failures.
    init(reading file: any DiskFile) throws(TokenStorageError) {
        try self.init(front: try Self.front(of: file))
    }

    /// Decodes both copies from the first ``VaultFormat/pointerStart`` bytes of a file, or fewer where it
    /// ends before. Throws `notAVault` when neither copy is marked as a vault's, `unsupportedFormat`, and
    /// `corrupt` when neither is whole.
    init(front: [UInt8]) throws(TokenStorageError) {
        let half = VaultFormat.keybagLength
        let first = Self.copy(Array(front.prefix(half)))
        let second = Array(front.dropFirst(half).prefix(half))
        // Both copies are the same, except between the steps of a change and after damage.
        copies = [first, isSame(second, first.bytes) ? first : Self.copy(second)]
        guard whole.isEmpty else { return }
        let failures = copies.compactMap { copy -> FormatError? in
            if case .failure(let error) = copy.keybag { return error }
            return nil
        }
        if failures.contains(.newerVersion) { throw .file(.unsupportedFormat) }
        let hasMagic = copies.contains { $0.bytes.starts(with: Keybag.magic) }
        throw hasMagic
            ? .file(.corrupt, .damaged(.bothKeybags)) : .file(.notAVault)
    }

    /// Returns the bytes of both copies, or fewer where `file` ends before.
    static func front(of file: any DiskFile) throws(TokenStorageError) -> [UInt8] {
        try onDisk { () throws(SystemFailure) in try file.read(VaultFormat.pointerStart, at: 0) }
    }

    private static func copy(_ bytes: [UInt8]) -> (bytes: [UInt8], keybag: Result<Keybag, FormatError>) {
        (bytes, Result { () throws(FormatError) in try Keybag(decoding: bytes) })
    }

    /// The copies that are whole, newest first, each once.
    var whole: [KeybagCopy] {
        var result: [KeybagCopy] = []
        for (index, copy) in copies.enumerated() {
            guard case .success(let keybag) = copy.keybag,
                !result.contains(where: { isSame($0.bytes, copy.bytes) })
            else { continue }
            result.append(KeybagCopy(index: index, bytes: copy.bytes, keybag: keybag))
        }
        return result.sorted { $0.keybag.generation > $1.keybag.generation }
    }

    /// The vaults that the whole copies name, unauthenticated.
    var vaults: [VaultIdentifier] { whole.map(\.keybag.vault) }

    /// Returns the vaults that copies name which may be damaged elsewhere.
    static func claimedVaults(front: [UInt8]) -> [VaultIdentifier] {
        [0, VaultFormat.keybagLength].compactMap { start in
            let name = start + Keybag.vaultOffset..<start + Keybag.vaultOffset + VaultIdentifier.length
            guard front.count >= name.upperBound, front[start...].starts(with: Keybag.magic) else {
                return nil
            }
            return VaultIdentifier(bytes: Array(front[name]))
        }
    }
}

extension KeybagCopies {
    /// Returns a copy of the keybag put together sector by sector from two damaged ones, `bytes`. Returns
    /// `nil` when no choice of sectors gives a whole copy. Both copies are the same except after a crash, and
    /// damage rarely hits the same sector of both.
    static func pieced(_ bytes: [UInt8]) -> KeybagCopy? {
        guard bytes.count == VaultFormat.pointerStart else { return nil }
        let length = VaultFormat.keybagLength
        let (first, second) = (Array(bytes[..<length]), Array(bytes[length...]))
        let sectors = stride(from: 0, to: length, by: VaultFormat.sector).map {
            $0..<$0 + VaultFormat.sector
        }
        let different = sectors.filter { first[$0] != second[$0] }
        guard different.count <= mostDifferent else { return nil }
        for choice in 0..<1 << different.count {
            var copy = first
            for (number, sector) in different.enumerated() where choice >> number & 1 == 1 {
                copy.replaceSubrange(sector, with: second[sector])
            }
            if let keybag = try? Keybag(decoding: copy) {
                return KeybagCopy(index: 0, bytes: copy, keybag: keybag)
            }
        }
        return nil
    }

    /// The most sectors that may differ: each doubles the work, which with so many is a tenth of a second.
    private static let mostDifferent = 12
}
