/// The way to providers, as the environment of a command says.
package struct NetworkSettings: Codable, Sendable, Equatable {
    /// The address of the proxy (`HTTPS_PROXY`); `nil` for none.
    package var proxy: String?
    /// The hosts that are reached without the proxy, separated by commas (`NO_PROXY`).
    package var proxyExceptions: String?
    /// The file of the trusted certificates, in place of the system's (`SSL_CERT_FILE`).
    package var certificateFile: String?

    package init() {}
}

/// Printing it shows no password of a proxy.
extension NetworkSettings: RedactedStringConvertible {}
