#if OAuth
internal import AsyncHTTPClient
internal import TokenVaultAuth

/// The proxy in an address, as `HTTPS_PROXY` has it: `http://[NAME:PASSWORD@]HOST[:PORT]` or
/// `socks5://HOST[:PORT]`.
enum ProxySettings {
    /// Returns the proxy; `nil` for an address that cannot be used.
    static func proxy(_ address: String) -> HTTPClient.Configuration.Proxy? {
        let parts = address.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
        let scheme = parts.count == 2 ? parts[0].lowercased() : "http"
        guard let rest = parts.last, scheme == "http" || scheme == "socks5" else { return nil }
        let place = rest.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)[0]
        let at = place.lastIndex(of: "@")
        let host = at.map { place[place.index(after: $0)...] } ?? place
        // Without a port, programs take this one for both kinds.
        guard let origin = RequestOrigin(address: "http://\(host)") else { return nil }
        let port = host.hasSuffix(":\(origin.port)") ? origin.port : 1_080
        guard let at else {
            return scheme == "http"
                ? .server(host: origin.host, port: port) : .socksServer(host: origin.host, port: port)
        }
        let pair = place[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard scheme == "http", pair.count == 2, let name = FormEncoding.percentDecoded(pair[0]),
            let password = FormEncoding.percentDecoded(pair[1])
        else { return nil }
        return .server(
            host: origin.host, port: port, authorization: .basic(username: name, password: password))
    }

    /// Whether requests to `origin` use no proxy: on this machine, and for a host in `exceptions` or below it.
    /// An asterisk stands for every host.
    static func isDirect(_ origin: RequestOrigin, _ exceptions: [String]) -> Bool {
        origin.isLoopback
            || exceptions.contains { exception in
                let text = exception.lowercased()
                if text == "*" { return true }
                let name = String(text.drop { $0 == "*" || $0 == "." }).filter { $0 != "[" && $0 != "]" }
                guard !name.isEmpty else { return false }
                // An address has no hosts below it.
                let isAddress = origin.host.allSatisfy { $0.isNumber || $0 == "." || $0 == ":" }
                return [origin.host, "\(origin.host):\(origin.port)"].contains {
                    $0 == name || (!isAddress && $0.hasSuffix(".\(name)"))
                }
            }
    }
}
#endif
