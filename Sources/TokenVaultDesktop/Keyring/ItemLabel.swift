internal import TokenVaultCore

/// The label of an item in the keyring: what a person sees, and the generation.
///
/// `A label (generation 1763723456789012)`; for an item without one, its key and
/// `(unlabelled, generation …)`. Only what was appended last is taken off again, so every label comes back
/// byte for byte, also one that looks like this.
///
/// The generation is the time the commit was begun, or above the one before it when the clock was set back.
/// An item that was not written within a second of it tells when it was:
/// `(generation 1763723456789012, written 1763723460)`.
struct ItemLabel {
    /// The caller's label; `nil` when the item has none.
    let text: String?
    let generation: Generation

    private static let labelled = " (generation "
    private static let unlabelled = " (unlabelled, generation "
    private static let written = ", written "
    // The year 2112. No clock writes a later generation, and later generations have room above it.
    static let bound: UInt64 = 1 << 52

    /// What to write for an item at a time, in seconds since 1970.
    static func write(_ metadata: TokenMetadata, at seconds: UInt64) -> String {
        let start =
            metadata.label.map { $0 + labelled }
            ?? Validation.fitting(label: metadata.key.name) + unlabelled
        let begun = metadata.generation.rawValue / 1_000_000
        let isThen = seconds == begun || seconds == begun + 1
        return start + "\(metadata.generation)" + (isThen ? ")" : "\(written)\(seconds))")
    }

    /// Reads a label; `changed` is when the service says that the item last changed, in seconds since 1970.
    ///
    /// An item that another program made or changed since gets another generation, from that time. The new
    /// generation is above the previous one, so that a compare-and-store notices the change.
    init(reading label: String, changed seconds: UInt64) {
        let ofChange = Generation(
            rawValue: min(seconds, Self.bound / 1_000_000 - 1) * 1_000_000 + 999_999)
        guard let mark = Mark(endOf: Array(label.utf8)) else {
            text = label.isEmpty ? nil : label
            generation = ofChange
            return
        }
        text = mark.text
        // A clock that is right within a day wrote neither number: another program invented them.
        let latest = min(seconds, Self.bound) + 86_400
        guard mark.number / 1_000_000 <= latest, mark.written <= latest else {
            generation = ofChange
            return
        }
        // Within a second of the writing, the reported change is the writing itself.
        guard seconds > mark.written + 1 else {
            generation = Generation(rawValue: mark.number)
            return
        }
        let later = min(mark.number + min(seconds - mark.written, Self.bound), Self.bound - 1)
        generation = max(ofChange, Generation(rawValue: later))
    }

    /// What stands at the end of a label that TokenVault wrote.
    private struct Mark {
        let text: String?
        let number: UInt64
        let written: UInt64

        init?(endOf bytes: [UInt8]) {
            guard bytes.last == UInt8(ascii: ")"), let (last, before) = Self.number(in: bytes.dropLast())
            else { return nil }
            var (number, rest) = (last, before)
            var written = last / 1_000_000
            if rest.reversed().starts(with: ItemLabel.written.utf8.reversed()) {
                guard let (first, before) = Self.number(in: rest.dropLast(ItemLabel.written.utf8.count))
                else { return nil }
                (number, written, rest) = (first, last, before)
            }
            guard number < ItemLabel.bound, written < ItemLabel.bound / 1_000_000 else { return nil }
            for (mark, isLabelled) in [(ItemLabel.unlabelled, false), (ItemLabel.labelled, true)] {
                guard rest.reversed().starts(with: mark.utf8.reversed()) else { continue }
                let text = String(decoding: rest.dropLast(mark.utf8.count), as: UTF8.self)
                (self.text, self.number, self.written) = (isLabelled ? text : nil, number, written)
                return
            }
            return nil
        }

        /// The decimal number at the end, and what is before it.
        private static func number(in bytes: ArraySlice<UInt8>) -> (UInt64, ArraySlice<UInt8>)? {
            let digits = bytes.reversed().prefix { (0x30...0x39).contains($0) }.count
            guard let number = UInt64(String(decoding: bytes.suffix(digits), as: UTF8.self)) else {
                return nil
            }
            return (number, bytes.dropLast(digits))
        }
    }
}
