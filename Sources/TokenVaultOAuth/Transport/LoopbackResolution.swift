#if OAuth
internal import AsyncHTTPClient
internal import TokenVaultAuth

extension HTTPClient.Configuration {
    /// Maps `localhost` to this machine, regardless of the resolver (RFC 6761 section 6.3). Requests to it
    /// may have secrets and are not encrypted.
    mutating func resolveLocalhostLiterally() { dnsOverride["localhost"] = "127.0.0.1" }
}

extension HTTPClientRequest {
    /// Writes `localhost` in lower case, as the configuration names it. `origin` is the origin of the
    /// request's address.
    mutating func spellLocalhost(of origin: RequestOrigin?) {
        guard let origin, origin.host == "localhost" else { return }
        let front = url.utf8.prefix(origin.scheme.utf8.count + "://".utf8.count)
        let rest = url.utf8.dropFirst(front.count + "localhost".utf8.count)
        url = String(Substring(front)) + "localhost" + String(Substring(rest))
    }
}
#endif
