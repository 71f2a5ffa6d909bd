/// Checks of the host in an address (RFC 3986 section 3.2.2), byte for byte.
extension Span<UInt8> {
    /// Returns the byte at `index`; `nil` past the end.
    func byte(at index: Int) -> UInt8? { index < count ? self[index] : nil }

    /// Whether the bytes begin with `prefix`, ignoring case. `prefix` has lower-case letters only.
    func begins(with prefix: String) -> Bool {
        let prefix = prefix.utf8Span.span
        guard count >= prefix.count else { return false }
        for index in 0..<prefix.count where self[index] != prefix[index] {
            guard self[index].isLetter, self[index] | 0x20 == prefix[index] else { return false }
        }
        return true
    }

    /// Returns the number in `range`: at most `digits` digits, without leading zeros. Returns `nil` for
    /// anything else.
    func number(_ range: Range<Int>, digits: Int) -> Int? {
        guard (1...digits).contains(range.count) else { return nil }
        guard range.count == 1 || self[range.lowerBound] != UInt8(ascii: "0") else { return nil }
        var number = 0
        for index in range {
            guard self[index].isDigit else { return nil }
            number = number * 10 + Int(self[index] - UInt8(ascii: "0"))
        }
        return number
    }

    /// Returns whether the bytes in `range` are a name of labels, or an IPv4 address. Returns false for other
    /// names that end in a numeric label. Some programs read such a name as an address (`inet_aton`: octal,
    /// hexadecimal, fewer than four parts), and others look it up.
    func isHostName(_ range: Range<Int>) -> Bool {
        guard (1...253).contains(range.count) else { return false }
        var label = range.lowerBound
        for index in range where self[index] == UInt8(ascii: ".") {
            guard (1...63).contains(index - label) else { return false }
            label = index + 1
        }
        guard (1...63).contains(range.upperBound - label) else { return false }
        return !isNumber(label..<range.upperBound) || isIPv4Address(range)
    }

    /// Whether the bytes in `range` are decimal digits, or hexadecimal digits after `0x`.
    private func isNumber(_ range: Range<Int>) -> Bool {
        if range.allSatisfy({ self[$0].isDigit }) { return true }
        let start = range.lowerBound
        guard range.count >= 2, self[start] == UInt8(ascii: "0"), self[start + 1] | 0x20 == UInt8(ascii: "x")
        else { return false }
        return range.dropFirst(2).allSatisfy { self[$0].isHexadecimal }
    }

    /// Whether the bytes in `range` are four numbers up to 255 (RFC 3986, `IPv4address`).
    func isIPv4Address(_ range: Range<Int>) -> Bool {
        var (parts, start) = (0, range.lowerBound)
        for index in start...range.upperBound
        where index == range.upperBound || self[index] == UInt8(ascii: ".") {
            guard let number = number(start..<index, digits: 3), number <= 255 else { return false }
            parts += 1
            start = index + 1
        }
        return parts == 4
    }

    /// Whether the bytes in `range` are an IPv6 address without a zone (RFC 4291 section 2.2). The address
    /// has eight groups, or six groups and an IPv4 address; `::` may stand for some of the groups.
    func isIPv6Address(_ range: Range<Int>) -> Bool {
        let end = range.upperBound
        func isColon(_ index: Int) -> Bool { index < end && self[index] == UInt8(ascii: ":") }
        var (index, groups, isShortened) = (range.lowerBound, 0, false)
        func isWhole(_ groups: Int) -> Bool { isShortened ? groups < 8 : groups == 8 }
        if isColon(index), isColon(index + 1) {
            (index, isShortened) = (index + 2, true)
            if index == end { return true }
        }
        while true {
            let start = index
            while index < end, self[index].isHexadecimal { index += 1 }
            if index < end, self[index] == UInt8(ascii: ".") {
                return isWhole(groups + 2) && isIPv4Address(start..<end)
            }
            guard (1...4).contains(index - start) else { return false }
            groups += 1
            if index == end { return isWhole(groups) }
            guard isColon(index) else { return false }
            index += 1
            if isColon(index) {
                guard !isShortened else { return false }
                (index, isShortened) = (index + 1, true)
                if index == end { return isWhole(groups) }
            }
        }
    }
}

extension UInt8 {
    var isDigit: Bool { (0x30...0x39).contains(self) }
    fileprivate var isLetter: Bool { (0x61...0x7a).contains(self | 0x20) }
    fileprivate var isHexadecimal: Bool { isDigit || (0x61...0x66).contains(self | 0x20) }
    /// Whether the byte is a letter, a digit, `-`, `.` or `_`.
    var isOfHostName: Bool { isDigit || isLetter || self == 0x2d || self == 0x2e || self == 0x5f }
}
