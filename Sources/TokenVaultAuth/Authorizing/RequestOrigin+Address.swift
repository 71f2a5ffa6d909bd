extension RequestOrigin {
    /// Creates the origin of `address`, an absolute `https` or `http` address (RFC 3986 section 3, RFC 6454
    /// section 4). Returns `nil` for any address that two programs could read differently.
    ///
    /// The address may not have a user, a fragment, an empty port, or anything but visible ASCII. The host
    /// may not have a percent sign, a dot at the end, or an empty label. A host that looks like a number is
    /// accepted only as an IPv4 address in its usual form. Letters beyond ASCII are written as `xn--` (RFC
    /// 5890).
    public init?(address: String) {
        let bytes = address.utf8Span.span
        let isEncrypted = bytes.begins(with: "https://")
        guard isEncrypted || bytes.begins(with: "http://") else { return nil }
        let host: Range<Int>
        var end = isEncrypted ? 8 : 7
        if bytes.byte(at: end) == UInt8(ascii: "[") {
            guard let bracket = (end..<bytes.count).first(where: { bytes[$0] == UInt8(ascii: "]") }) else {
                return nil
            }
            host = end + 1..<bracket
            guard bytes.isIPv6Address(host) else { return nil }
            end = bracket + 1
        } else {
            let start = end
            while let byte = bytes.byte(at: end), byte.isOfHostName { end += 1 }
            host = start..<end
            guard bytes.isHostName(host) else { return nil }
        }
        var port = isEncrypted ? 443 : 80
        if bytes.byte(at: end) == UInt8(ascii: ":") {
            let start = end + 1
            end = start
            while let byte = bytes.byte(at: end), byte.isDigit { end += 1 }
            guard let number = bytes.number(start..<end, digits: 5), (1...65_535).contains(number) else {
                return nil
            }
            port = number
        }
        // No other character ends a host and its port. Before an `@`, the text would be a user name.
        switch bytes.byte(at: end) {
        case nil, UInt8(ascii: "/"), UInt8(ascii: "?"): break
        default: return nil
        }
        for index in end..<bytes.count {
            guard (0x21...0x7e).contains(bytes[index]), bytes[index] != UInt8(ascii: "#") else { return nil }
        }
        let hasCapitals = host.contains { (0x41...0x5a).contains(bytes[$0]) }
        let name = address.utf8.dropFirst(host.lowerBound).prefix(host.count)
        self.init(
            exactly: isEncrypted ? "https" : "http",
            host: hasCapitals ? Substring(name).lowercased() : String(Substring(name)), port: port)
    }
}
