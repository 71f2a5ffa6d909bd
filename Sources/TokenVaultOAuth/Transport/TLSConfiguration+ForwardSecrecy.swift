#if OAuth
internal import AsyncHTTPClient
internal import NIOSSL

extension TLSConfiguration {
    /// Requires TLS 1.2 or later, whatever was configured. With TLS 1.2 the key exchange is ephemeral and the cipher
    /// authenticates (RFC 9325 sections 3.1.1, 4.1 and 4.2). An attacker that gets the server's key later then cannot
    /// read recorded traffic.
    mutating func requireForwardSecrecy() {
        if !minimumTLSVersion.isRecent { minimumTLSVersion = .tlsv12 }
        if maximumTLSVersion?.isRecent == false { maximumTLSVersion = nil }
        // The ciphers of TLS 1.3 all have both properties, and are no part of this list.
        cipherSuites = "ECDHE+AESGCM:ECDHE+CHACHA20"
    }
}

extension HTTPClient.Configuration {
    /// Requires the same of every connection whose request has no TLS settings of its own.
    mutating func requireForwardSecrecy() {
        var tls = tlsConfiguration ?? .makeClientConfiguration()
        tls.requireForwardSecrecy()
        tlsConfiguration = tls
    }
}

extension TLSVersion {
    fileprivate var isRecent: Bool {
        switch self {
        case .tlsv12, .tlsv13: true
        default: false
        }
    }
}
#endif
