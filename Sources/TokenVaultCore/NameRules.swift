/// Rules for names from callers.
package enum NameRules {
    /// Returns whether `name` is at most 1,024 bytes of UTF-8.
    package static func fits(_ name: String) -> Bool { name.utf8.count <= TokenKey.maximumLength }

    /// Returns whether `text` has one of U+0000 to U+001F and U+007F to U+009F.
    ///
    /// Works byte by byte: decoding scalars takes twice as long.
    package static func hasControlCharacters(_ text: String) -> Bool {
        let bytes = text.utf8.span
        for index in bytes.indices {
            switch bytes[index] {
            case ..<0x20, 0x7f: return true
            // 0xC2 begins U+0080 to U+00BF. Valid UTF-8 always has a byte after it.
            case 0xc2 where bytes[index + 1] < 0xa0: return true
            default: continue
            }
        }
        return false
    }

    /// Returns whether `scalar` is one of U+0000 to U+001F and U+007F to U+009F.
    package static func isControlCharacter(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value)
    }
}

/// Texts compared by bytes: for `String`'s own equality, `é` as one scalar equals `é` as two.
package enum Bytes {
    package static func areEqual(_ left: String?, _ right: String?) -> Bool {
        switch (left, right) {
        case (nil, nil): true
        case (let left?, let right?): areEqual(left, right)
        default: false
        }
    }

    /// Returns whether both have the same bytes. Compares contiguous bytes: `elementsEqual` of two texts
    /// takes four times as long.
    package static func areEqual(_ left: String, _ right: String) -> Bool {
        let left = left.utf8.span
        let right = right.utf8.span
        guard left.count == right.count else { return false }
        for index in left.indices where left[index] != right[index] { return false }
        return true
    }
}
