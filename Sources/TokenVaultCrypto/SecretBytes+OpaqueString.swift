@_spi(_Unicode) internal import Swift

extension SecretBytes {
    /// The bytes as RFC 8265's profile OpaqueString (section 4.2) writes a passphrase, so that keyboards and systems that spell
    /// the same text in different ways agree: every space that is not U+0020 becomes U+0020, and the text is in Normalization
    /// Form C. `nil` when the bytes are so already, or are no UTF-8. The profile's refusals are left out: a passphrase may have any
    /// character.
    ///
    /// The text is taken a character at a time, so that no copy of more than that is outside wiped memory.
    package func asOpaqueString() -> SecretBytes? {
        withUnsafeBytes { bytes in
            if bytes.allSatisfy({ $0 < 0x80 }) { return nil }
            // No text grows to more than three times its length (Unicode Standard Annex 15, section 9).
            var isText = true
            let text = SecretBytes(capacity: 3 * bytes.count) { target in
                var writer = NormalizingWriter(target: target)
                var decoder = UTF8()
                var source = bytes.makeIterator()
                decoding: while true {
                    switch decoder.decode(&source) {
                    case .scalarValue(let scalar): writer.append(scalar)
                    case .emptyInput: break decoding
                    case .error:
                        isText = false
                        return 0
                    }
                }
                writer.flush()
                return writer.count
            }
            return isText && !text.isEqual(to: self) ? text : nil
        }
    }
}

/// Writes a text in Normalization Form C, a piece at a time that nothing before or behind it combines with.
private struct NormalizingWriter {
    let target: UnsafeMutableRawBufferPointer
    private(set) var count = 0
    /// What may still combine with what follows.
    private var piece = String.UnicodeScalarView()

    init(target: UnsafeMutableRawBufferPointer) { self.target = target }

    mutating func append(_ scalar: Unicode.Scalar) {
        let isSpace = scalar.properties.generalCategory == .spaceSeparator
        let scalar = isSpace ? " " : scalar
        if Self.combinesWithNothingBefore(scalar) { flush() }
        piece.append(scalar)
    }

    mutating func flush() {
        for scalar in String(piece)._nfc {
            for byte in UTF8.encode(scalar).unsafelyUnwrapped where count < target.count {
                target[count] = byte
                count += 1
            }
        }
        piece.removeAll(keepingCapacity: true)
    }

    /// Whether `scalar` begins a piece that is normalized by itself. Marks do not, and neither do letters that join the letter
    /// before them: the vowels and finals of Hangul, and the vowels of Kirat Rai.
    private static func combinesWithNothingBefore(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: false
        default:
            scalar.properties.canonicalCombiningClass == .notReordered
                && !(0x1160...0x11ff).contains(scalar.value) && !(0xd7b0...0xd7ff).contains(scalar.value)
                && !(0x16d40...0x16d7f).contains(scalar.value)
        }
    }
}
