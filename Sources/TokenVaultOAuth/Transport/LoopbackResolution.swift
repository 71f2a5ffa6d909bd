#if OAuth
internal import AsyncHTTPClient
internal import TokenVaultAuth

extension HTTPClient.Configuration {
    /// Has `localhost` lead to this machine, whatever the resolver says of it (RFC 6761 section 6.3): what goes there may be
    /// secret and is not encrypted.
    mutating func resolveLocalhostLiterally() { dnsOverride["localhost"] = "127.0.0.1" }
}

extension HTTPClientRequest {
    /// Writes `localhost` as the configuration names it, where `origin`, which is the
    /// address's, has it in capitals.
    mutating func spellLocalhost(of origin: RequestOrigin?) {
        guard let origin, origin.host == "localhost" else { return }
        let front = url.utf8.prefix(origin.scheme.utf8.count + "://".utf8.count)
        let rest = url.utf8.dropFirst(front.count + "localhost".utf8.count)
        url = String(Substring(front)) + "localhost" + String(Substring(rest))
    }
}
#endif
