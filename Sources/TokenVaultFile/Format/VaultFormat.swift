internal import TokenVaultCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The numbers of the vault file, version 1. `Format.md` in the documentation catalog describes them.
enum VaultFormat {
    /// The format version that this code writes.
    static let version: UInt16 = 1

    /// Length of each of the two keybag copies at the front of the file.
    static let keybagLength = 8_192
    /// Offset of the sector that says where the index is, behind the keybag copies.
    static let pointerStart = 2 * keybagLength
    /// Offset of the first frame.
    static let logStart = pointerStart + sector
    /// The most frames behind the index before a writer writes another: each of them is read whenever the
    /// vault is opened.
    static let tailBound = 1_000

    /// Zeros at the end of the file that only deletions and keybag records may use.
    static let reserve = 64 << 10
    /// The size in bytes below which a file is compacted at once when something is deleted.
    static let compactionFloor = 1 << 20

    /// The unit in which a disk writes: a crash keeps or loses whole ones.
    static let sector = 512

    /// The largest sequence number, and the largest number of an epoch, generation of a keybag and date in milliseconds:
    /// JSON readers keep integers below 2^53 exact. Whatever a file says, the next number does not overflow.
    static let largestSequence: UInt64 = (1 << 53) - 1

    /// Returns the date in milliseconds since 1970, within what readers accept. A clock may say anything.
    static func milliseconds(_ date: Date) -> Int64 {
        let (value, largest) = ((date.timeIntervalSince1970 * 1_000).rounded(), Double(largestSequence))
        return Int64(value.isNaN ? 0 : max(-largest, min(largest, value)))
    }

    /// Returns whether readers accept a date in milliseconds since 1970.
    static func isDate(_ milliseconds: Int64) -> Bool { milliseconds.magnitude <= largestSequence }

    /// Returns the number of zeros to keep ahead of a log of `length` bytes, beside the reserve. It is small
    /// for small vaults, and never so large that preparing it, or reading it when the vault is opened, would
    /// be felt.
    static func headroom(for length: Int) -> Int { min(max(64 << 10, length / 8), 1 << 20) }

    /// Returns the length to pad `length` to by Padmé: it leaks at most log(log(length)) bits and grows by at
    /// most 12 %. Source: "Reducing Metadata Leakage from Encrypted Files and Communication with PURBs"
    /// (2019), section 4. Rounded up to a multiple of eight, which keeps frames aligned.
    static func padded(_ length: Int) -> Int {
        var result = max(length, 8)
        let exponent = Int.bitWidth - 1 - result.leadingZeroBitCount
        let significant = Int.bitWidth - exponent.leadingZeroBitCount
        let clearBits = exponent - significant
        if clearBits > 0 {
            let mask = (1 << clearBits) - 1
            result = (result + mask) & ~mask
        }
        return (result + 7) & ~7
    }
}

/// The 16 random bytes that name a vault for ever.
struct VaultIdentifier: Hashable, Sendable {
    static let length = 16
    let bytes: [UInt8]

    /// The name in the state directory: 32 hexadecimal digits.
    var hexadecimal: String { bytes.hexadecimal }
}

extension VaultIdentifier {
    /// Creates the identifier whose ``hexadecimal`` is `text`; `nil` for another text.
    init?(hexadecimal text: String) {
        let digits = Array(text.utf8)
        guard digits.count == 2 * Self.length else { return nil }
        let bytes = stride(from: 0, to: digits.count, by: 2).compactMap { place in
            UInt8(String(decoding: digits[place..<place + 2], as: UTF8.self), radix: 16)
        }
        self.init(bytes: bytes)
        guard hexadecimal == text else { return nil }
    }
}
