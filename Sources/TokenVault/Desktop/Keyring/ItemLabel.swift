/// The label of an item in the keyring: what a person sees, and the generation.
///
/// `A label (generation 1763723456789012)`; for an item without one, its key and
/// `(unlabelled, generation …)`. Only what was appended last is taken off again, so every label comes back
/// byte for byte, also one that looks like this.
struct ItemLabel {
    /// The caller's label; `nil` when the item has none.
    let text: String?
    let generation: Generation

    private static let labelled = " (generation "
    private static let unlabelled = " (unlabelled, generation "

    /// What to write for an item.
    static func write(_ metadata: TokenMetadata) -> String {
        (metadata.label.map { $0 + labelled } ?? metadata.key.name + unlabelled)
            + "\(metadata.generation))"
    }

    /// Reads a label; `changed` is when the service says that the item last changed, in seconds since 1970.
    ///
    /// An item that another program made or changed since gets its generation from that time, so that a
    /// compare-and-store notices.
    init(reading label: String, changed seconds: UInt64) {
        let ofChange = Generation(
            rawValue: min(seconds, (1 << 53) / 1_000_000 - 1) * 1_000_000 + 999_999)
        let bytes = Array(label.utf8)
        guard let (text, number) = Self.split(bytes) else {
            self.text = label.isEmpty ? nil : label
            generation = ofChange
            return
        }
        self.text = text
        // A generation is taken before the write: within a second of it the change is the write itself.
        let isLater = seconds > number / 1_000_000 + 1
        generation = isLater ? max(ofChange, Generation(rawValue: number)) : Generation(rawValue: number)
    }

    private static func split(_ bytes: [UInt8]) -> (text: String?, number: UInt64)? {
        guard bytes.last == UInt8(ascii: ")") else { return nil }
        let digits = bytes.dropLast().reversed().prefix { (0x30...0x39).contains($0) }.count
        let start = bytes.count - 1 - digits
        guard let number = UInt64(String(decoding: bytes[start..<bytes.count - 1], as: UTF8.self)),
            number < 1 << 53
        else { return nil }
        for (mark, isLabelled) in [(unlabelled, false), (labelled, true)] {
            guard bytes[..<start].reversed().starts(with: mark.utf8.reversed()) else { continue }
            let text = String(decoding: bytes[..<(start - mark.utf8.count)], as: UTF8.self)
            return (isLabelled ? text : nil, number)
        }
        return nil
    }
}
