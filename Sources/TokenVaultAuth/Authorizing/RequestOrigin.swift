/// The scheme, host and port that a request goes to (RFC 6454). Two origins are equal when all three are.
public struct RequestOrigin: Hashable, Sendable {
    /// The scheme in lower case, usually `https`.
    public let scheme: String
    /// The host in lower case, without a trailing dot; an IPv6 address without brackets.
    public let host: String
    /// The port; the default port of the scheme if none was given.
    public let port: Int

    /// Creates an origin. `port` may be omitted for `https` (443) and `http` (80); another scheme without a
    /// port has port 0.
    public init(scheme: String, host: String, port: Int? = nil) {
        let scheme = scheme.lowercased()
        var host = host.lowercased()
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        if host.hasSuffix(".") { host.removeLast() }
        let usual = scheme == "https" ? 443 : scheme == "http" ? 80 : 0
        self.init(exactly: scheme, host: host, port: port ?? usual)
    }

    /// Creates an origin from parts that are already normalized.
    init(exactly scheme: String, host: String, port: Int) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// Returns the origin `https` at `host`.
    public static func https(_ host: String, port: Int? = nil) -> RequestOrigin {
        RequestOrigin(scheme: "https", host: host, port: port)
    }

    /// The origin as an address, with the port unless it is the default one of `https` or `http`.
    package var text: String {
        let name = host.contains(":") ? "[\(host)]" : host
        let usual = scheme == "https" ? 443 : scheme == "http" ? 80 : 0
        return "\(scheme)://\(name)\(port == usual ? "" : ":\(port)")"
    }

    /// Whether data sent to the origin cannot be read on the way: it is encrypted, or stays on this machine.
    public var keepsSecrets: Bool { scheme == "https" || isLoopback }

    /// Whether the host is this machine, by a loopback address or as `localhost` (RFC 6761 section 6.3).
    public var isLoopback: Bool {
        if host == "::1" || host == "localhost" { return true }
        let bytes = host.utf8Span.span
        return host.hasPrefix("127.") && bytes.isIPv4Address(0..<bytes.count)
    }
}
