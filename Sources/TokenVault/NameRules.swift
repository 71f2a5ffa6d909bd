/// Rules for the names a caller gives.
enum NameRules {
    /// Whether `name` is at most 1,024 bytes of UTF-8.
    static func fits(_ name: String) -> Bool { name.utf8.count <= TokenKey.maximumLength }

    /// Whether `text` has one of U+0000 to U+001F and U+007F to U+009F.
    ///
    /// Byte by byte: decoding scalars takes twice as long.
    static func hasControlCharacters(_ text: String) -> Bool {
        let bytes = text.utf8.span
        for index in bytes.indices {
            switch bytes[index] {
            case ..<0x20, 0x7f: return true
            // U+0080 to U+00BF begin with it, and text is never cut off there.
            case 0xc2 where bytes[index + 1] < 0xa0: return true
            default: continue
            }
        }
        return false
    }

    /// Whether `scalar` is one of U+0000 to U+001F and U+007F to U+009F.
    static func isControlCharacter(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value)
    }
}

/// Texts as the bytes they are: `String`'s own equality takes `é` as one scalar for `é` as two.
enum Bytes {
    static func areEqual(_ left: String?, _ right: String?) -> Bool {
        switch (left, right) {
        case (nil, nil): true
        case (let left?, let right?): areEqual(left, right)
        default: false
        }
    }

    /// Whether both are the same bytes. Over contiguous bytes: `elementsEqual` of two texts takes four times as long.
    static func areEqual(_ left: String, _ right: String) -> Bool {
        let left = left.utf8.span
        let right = right.utf8.span
        guard left.count == right.count else { return false }
        for index in left.indices where left[index] != right[index] { return false }
        return true
    }
}
