internal import TokenVaultCrypto
internal import TokenVaultPlatform

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
