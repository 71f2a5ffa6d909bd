@_spi(_Unicode) internal import Swift

extension SecretBytes {
    /// Returns the bytes in the form of RFC 8265's profile OpaqueString (section 4.2) for a passphrase.
    /// Keyboards and systems that encode the same text differently then agree. Every space that is not U+0020
    /// becomes U+0020, and the text is in Normalization Form C.
    ///
    /// Returns `nil` when the bytes already have this form, or are not UTF-8. The rejections of the profile
    /// are left out: a passphrase may have any character.
    ///
    /// The text is handled one character at a time, so that no larger copy exists outside wiped memory.
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

/// Writes a text in Normalization Form C, in pieces that do not combine with the text before or behind them.
private struct NormalizingWriter {
    let target: UnsafeMutableRawBufferPointer
    private(set) var count = 0
    /// The scalars that may still combine with the next ones.
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

    /// Returns whether `scalar` begins a piece that is normalized on its own. Marks do not. Letters that join
    /// the letter before them do not either: the vowels and finals of Hangul, and the vowels of Kirat Rai.
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
