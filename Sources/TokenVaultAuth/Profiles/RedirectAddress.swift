/// The address on this machine that a browser returns to after a sign-in, as it is registered at the provider
/// (RFC 8252 section 7.3).
package struct RedirectAddress: Sendable, Equatable {
    /// The host in the address.
    package enum Host: String, Sendable, CaseIterable {
        case ipv4 = "127.0.0.1"
        case ipv6 = "[::1]"
        /// Both addresses of this machine; the browser chooses.
        case name = "localhost"
    }

    package let host: Host
    /// The port; 0 for any free port.
    package var port: Int
    /// The path, which is empty or begins with a slash.
    package let path: String

    /// Creates the address in `text`; `nil` unless it is `http` at one of the hosts, without a query. Without
    /// a port in `text`, the port is 0.
    package init?(_ text: String) {
        guard let origin = RequestOrigin(address: text), !text.contains("?"),
            let host = Host.allCases.first(where: { text.hasPrefix("http://\($0.rawValue)") })
        else { return nil }
        let rest = text.dropFirst("http://".utf8.count + host.rawValue.utf8.count)
        switch rest.first {
        case nil, "/":
            (port, path) = (0, String(rest))
        case ":":
            (port, path) = (origin.port, String(rest.drop { $0 != "/" }))
        default: return nil
        }
        self.host = host
        guard Self.isPath(path) else { return nil }
    }

    private init(path: String, port: Int) {
        host = .ipv4
        self.path = path
        self.port = port
    }

    /// Whether `path` has only characters of a path and no dot segments (RFC 3986 section 6.2.2.3), so that no
    /// client rewrites it.
    package static func isPath(_ path: String) -> Bool {
        var rest = path.utf8[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "%"):
                for _ in 0..<2 {
                    guard let digit = rest.popFirst(), Character(Unicode.Scalar(digit)).isHexDigit else {
                        return false
                    }
                }
            default:
                guard isOfPath(byte) else { return false }
            }
        }
        let segments = path.lowercased().replacing("%2e", with: ".").split(separator: "/")
        return !segments.contains(".") && !segments.contains("..")
    }

    private static func isOfPath(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte | 0x20)
            || "-._~!$&'()*+,;=:@/".utf8.contains(byte)
    }

    /// Returns the default redirect address for `issuer`. The path is `/callback` if every answer has to name the
    /// provider (RFC 9207). Otherwise it is `/issuer/` and the issuer, without its scheme and without a slash at its
    /// end. Neither path is below the other, because some providers accept every path below a registered one.
    ///
    /// A dishonest provider can forward the browser to an honest one, to obtain a code of the honest one. The honest
    /// provider rejects that request, because the path with another issuer is not registered there (RFC 9700
    /// section 4.4.2.2).
    package static func usual(
        for issuer: String, isNamedInAnswers: Bool, port: Int = 0
    ) -> RedirectAddress {
        guard !isNamedInAnswers else { return RedirectAddress(path: "/callback", port: port) }
        let name = issuer.split(separator: "://", maxSplits: 1).last ?? ""
        let path = (name.hasSuffix("/") ? name.dropLast() : name).replacing("[", with: "%5B")
            .replacing("]", with: "%5D")
        return RedirectAddress(path: "/issuer/\(path)", port: port)
    }

    /// The address of profiles of the first version.
    package static let former = RedirectAddress(path: "/callback", port: 0)

    /// The address, with its port unless that is 0.
    package var text: String { text(at: port == 0 ? nil : port) }

    /// Returns the address with `port` in it.
    package func text(at port: Int?) -> String {
        "http://\(host.rawValue)\(port.map { ":\($0)" } ?? "")\(path)"
    }
}
