/// Rules for the names a caller gives.
enum NameRules {
    /// Whether `name` is 1 to 1,024 bytes of UTF-8 without control characters.
    static func isUsable(_ name: String) -> Bool {
        (1...TokenKey.maximumLength).contains(name.utf8.count) && !hasControlCharacters(name)
    }

    /// Whether `text` has one of U+0000 to U+001F and U+007F to U+009F.
    static func hasControlCharacters(_ text: String) -> Bool {
        text.unicodeScalars.contains { isControlCharacter($0) }
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
        case (let left?, let right?): left.utf8.elementsEqual(right.utf8)
        default: false
        }
    }
}
