#if OAuth
internal import AsyncHTTPClient
internal import NIOSSL

extension HTTPClient.Configuration {
    /// Makes every connection use TLS 1.2 or later, whatever was configured. With TLS 1.2 the key exchange is ephemeral and the
    /// cipher authenticates (RFC 9325 sections 3.1.1, 4.1 and 4.2). Recorded traffic then stays closed to those who get the
    /// server's key later.
    mutating func requireForwardSecrecy() {
        var tls = tlsConfiguration ?? .makeClientConfiguration()
        if !tls.minimumTLSVersion.isRecent { tls.minimumTLSVersion = .tlsv12 }
        if tls.maximumTLSVersion?.isRecent == false { tls.maximumTLSVersion = nil }
        // The ciphers of TLS 1.3 all have both properties, and are no part of this list.
        tls.cipherSuites = "ECDHE+AESGCM:ECDHE+CHACHA20"
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
