/// Computes the number of terminal columns of a text.
enum DisplayWidth {
    /// Returns the columns of `text`: two for East Asian wide characters and emoji, none for combining marks
    /// alone.
    static func columns(of text: some StringProtocol) -> Int { text.reduce(0) { $0 + columns(of: $1) } }

    /// Returns `text`, cut to `width` columns with an ellipsis where it is longer.
    static func cut(_ text: String, to width: Int) -> String {
        guard columns(of: text) > width else { return text }
        var (kept, used) = ("", 1)
        for character in text {
            used += columns(of: character)
            guard used <= width else { break }
            kept.append(character)
        }
        return kept + "…"
    }

    /// Returns `text` with trailing spaces up to `width` columns.
    static func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - columns(of: text)))
    }

    private static func columns(of character: Character) -> Int {
        let scalars = character.unicodeScalars
        if scalars.contains(where: { isWide($0) || $0.value == 0xFE0F }) { return 2 }
        return scalars.allSatisfy(isMark) ? 0 : 1
    }

    private static func isMark(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: true
        default: false
        }
    }

    /// Whether the East Asian width is *wide* or *fullwidth* (Unicode Standard Annex #11), by blocks.
    private static func isWide(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case ..<0x1100: false
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,
            0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x18DFF,
            0x1B000...0x1B2FF, 0x20000...0x3FFFD:
            true
        default: scalar.properties.isEmojiPresentation
        }
    }
}
