public import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// A recovery key: 160 random bits that open a vault when its passphrase or keyring is lost. The user can
/// copy its text by hand.
///
/// The text is eight groups of five characters of Crockford's base32 (no I, L, O, U), with dashes in between.
/// The last character of each group is a check. It finds every mistyped character, and every two exchanged
/// ones, before any key is derived, and the error names the group. Case, spaces and dashes do not matter; I
/// and L are read as 1, O as 0.
public struct RecoveryKey: Sendable {
    /// The 20 random bytes.
    let bytes: SecretBytes

    static let length = 20
    private static let groups = 8
    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

    /// Creates a fresh key.
    public init() {
        var random = Random.bytes(Self.length)
        defer { SmallFile.wipe(&random) }
        bytes = SecretBytes(copying: random)
    }

    /// Reads a key that the user typed. Throws `wrongPassphrase`, with the mistyped groups, and
    /// `invalidArgument` for a text that is no recovery key at all.
    public init(_ text: Secret) throws(TokenStorageError) {
        switch Self.read(text) {
        case .key(let key): self = key
        case .mistyped(let groups): throw KeybagKeys.error(for: .mistyped(groups)).during("recovery key")
        case .somethingElse:
            throw .file(.invalidArgument, .limit(.recoveryKey))
                .during("recovery key")
        }
    }

    private init(bytes: SecretBytes) { self.bytes = bytes }

    /// The key in the form for writing down: 47 bytes of ASCII.
    public var text: Secret {
        var secret = bytes.array()
        var symbols = Self.regrouped(secret, from: 8, to: 5)
        defer {
            SmallFile.wipe(&secret)
            SmallFile.wipe(&symbols)
        }
        var text: [UInt8] = []
        text.reserveCapacity(6 * Self.groups)
        for group in 0..<Self.groups {
            if group > 0 { text.append(UInt8(ascii: "-")) }
            let part = symbols[4 * group..<4 * group + 4]
            for symbol in part { text.append(Self.alphabet[Int(symbol)]) }
            text.append(Self.alphabet[Int(Self.check(part, group: group))])
        }
        defer { SmallFile.wipe(&text) }
        return Secret(text)
    }

    /// The result of reading a typed text.
    enum Reading {
        case key(RecoveryKey)
        /// The numbers, from 1, of the groups that do not check; at least half of the groups do.
        case mistyped([Int])
        /// The text is no recovery key, nor nearly one.
        case somethingElse
    }

    /// Reads a text that the user typed.
    static func read(_ text: Secret) -> Reading {
        // A text longer than any form of a recovery key is a passphrase.
        guard text.count <= 120 else { return .somethingElse }
        var typed = text.unprotectedBytes()
        defer { SmallFile.wipe(&typed) }
        var symbols: [UInt8] = []
        symbols.reserveCapacity(4 * groups)
        defer { SmallFile.wipe(&symbols) }
        var wrong: [Int] = []
        guard let parts = parts(of: typed) else { return .somethingElse }
        for (group, part) in parts.enumerated() {
            let values = part.compactMap { value(of: typed[$0]) }
            if values.count == 5, part.count == 5, check(values[..<4], group: group) == values[4] {
                symbols += values[..<4]
            } else {
                wrong.append(group + 1)
            }
        }
        if wrong.count > groups / 2 { return .somethingElse }
        if !wrong.isEmpty { return .mistyped(wrong) }
        var bytes = regrouped(symbols, from: 5, to: 8)
        defer { SmallFile.wipe(&bytes) }
        return .key(RecoveryKey(bytes: SecretBytes(copying: bytes)))
    }

    /// Returns the places of the characters of each group: as they are separated, or five by five; `nil` when
    /// neither gives eight groups.
    private static func parts(of typed: [UInt8]) -> [[Int]]? {
        let separators: [UInt8] = [UInt8(ascii: "-"), UInt8(ascii: " "), 0x09]
        let separated = typed.indices.split { separators.contains(typed[$0]) }
        if separated.count == groups { return separated.map { Array($0) } }
        let places = Array(separated.joined())
        guard places.count == 5 * groups else { return nil }
        return (0..<groups).map { Array(places[5 * $0..<5 * $0 + 5]) }
    }

    private static func value(of character: UInt8) -> UInt8? {
        var upper = character
        if (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(upper) { upper -= 32 }
        switch upper {
        case UInt8(ascii: "I"), UInt8(ascii: "L"): return 1
        case UInt8(ascii: "O"): return 0
        default: return alphabet.firstIndex(of: upper).map { UInt8($0) }
        }
    }

    /// Returns the check of a group of four symbols, as an element of GF(32) with x⁵ + x² + 1. The check
    /// begins with the group's number, from 1; each symbol is added and the sum multiplied by x. Each place
    /// has a factor of its own, so that one wrong symbol or two exchanged ones always show.
    private static func check(_ symbols: ArraySlice<UInt8>, group: Int) -> UInt8 {
        symbols.reduce(UInt8(group + 1)) { sum, symbol in
            let doubled = (sum ^ symbol) << 1
            return doubled & 32 == 0 ? doubled : doubled ^ 0b100101
        }
    }

    /// Returns the same bits, the highest first, in elements of another number of bits.
    private static func regrouped(_ elements: [UInt8], from: Int, to: Int) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(elements.count * from / to)
        var bits: UInt32 = 0
        var count = 0
        for element in elements {
            bits = bits << UInt32(from) | UInt32(element)
            count += from
            while count >= to {
                count -= to
                result.append(UInt8(bits >> UInt32(count) & ((1 << UInt32(to)) - 1)))
                bits &= (1 << UInt32(count)) - 1
            }
        }
        return result
    }
}
