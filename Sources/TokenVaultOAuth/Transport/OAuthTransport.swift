#if OAuth
public import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPCompression
internal import NIOPosix
public import NIOSSL
internal import SystemPackage
public import TokenVaultAuth

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// Sends requests to a provider. The transport checks certificates, uses TLS 1.2 or later with ephemeral keys, follows no
/// redirects, and limits every wait and every response. One transport can serve several clients.
///
/// Each request has a new connection. A server could close a kept connection just when a refresh token is
/// sent on it. It would then be unknown whether the server took the token.
public final class OAuthTransport: Sendable {
    /// The limits and the trusted certificates.
    public struct Configuration: Sendable {
        /// The longest time for a connection, including its encryption. Default: 10 s.
        public var connectTimeout: Duration = .seconds(10)
        /// The longest time of a request, from its beginning to the end of the response. Default: 30 s.
        public var requestTimeout: Duration = .seconds(30)
        /// The longest response, in bytes, also after it was decompressed. Default: 1 MiB.
        public var maximumResponseLength = 1 << 20
        /// The trusted certificates; `nil` for those that the system trusts. Its versions and ciphers count only as far as they
        /// are TLS 1.2 or later with ephemeral keys.
        public var tlsConfiguration: TLSConfiguration?
        /// The proxy; `nil` for none. The environment is not read. Requests to this machine use no proxy.
        public var proxy: HTTPClient.Configuration.Proxy?
        /// The hosts whose requests use no proxy, nor those to hosts below them; `*` for all. Default: none.
        public var proxyExceptions: [String] = []
        /// The clock from which `Retry-After` is counted.
        public var clock: @Sendable () -> Date = { Date() }

        /// Creates the default configuration.
        public init() {}
    }

    /// The limits.
    public let configuration: Configuration
    private let client: HTTPClient
    /// The client without the proxy; `nil` where there is none.
    private let directClient: HTTPClient?

    /// Creates a transport on the event loops that the whole process shares.
    public init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
        client = HTTPClient(
            eventLoopGroupProvider: .singleton, configuration: Self.settings(for: configuration))
        var direct = configuration
        direct.proxy = nil
        directClient = configuration.proxy.map { _ in
            HTTPClient(eventLoopGroupProvider: .singleton, configuration: Self.settings(for: direct))
        }
    }

    static func settings(for configuration: Configuration) -> HTTPClient.Configuration {
        var settings = HTTPClient.Configuration(
            tlsConfiguration: configuration.tlsConfiguration, redirectConfiguration: .disallow)
        settings.timeout.connect = TimeAmount(configuration.connectTimeout)
        settings.proxy = configuration.proxy
        settings.httpVersion = .http1Only
        settings.maximumUsesPerConnection = 1
        // A refused connection is reported at once; the caller decides when to try again.
        settings.connectionPool.retryConnectionEstablishment = false
        // No request asks for compression, but some gateways compress anyway.
        settings.decompression = .enabled(limit: .size(configuration.maximumResponseLength))
        settings.requireForwardSecrecy()
        settings.checkStatuses()
        settings.resolveLocalhostLiterally()
        return settings
    }

    deinit {
        // Without a shutdown, the client ends the process.
        Task { [client, directClient] in
            try? await client.shutdown()
            try? await directClient?.shutdown()
        }
    }

    /// A complete response of a server.
    struct Answer: Sendable {
        let status: Int
        let headers: HTTPHeaders
        let body: [UInt8]
        /// The time of the `Date` header.
        let serverDate: Date?
        /// The end of `Retry-After`, by this machine's clock.
        let retryAfter: Date?
        /// Whether the server carried out the request (RFC 9110 section 15.3).
        var isSuccess: Bool { (200...299).contains(status) }
        /// The nonce for the next proof (RFC 9449 section 8); `nil` without one.
        var dpopNonce: String? { headers.first(name: "DPoP-Nonce") }
    }

    func get(_ address: WebAddress) async throws(RefreshFailure) -> Answer {
        try await send(HTTPClientRequest(url: address.text))
    }

    /// Sends `form` with `headers`. The copy in transit is not wiped.
    func post(
        _ form: FormEncoding.Fields, to address: WebAddress, headers: [(name: String, value: String)] = []
    ) async throws(RefreshFailure) -> Answer {
        var request = HTTPClientRequest(url: address.text)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/x-www-form-urlencoded")
        for (name, value) in headers { request.headers.add(name: name, value: value) }
        request.body = .bytes(ByteBuffer(string: FormEncoding.encode(form)))
        return try await send(request)
    }

    private func send(_ request: HTTPClientRequest) async throws(RefreshFailure) -> Answer {
        var request = request
        let origin = RequestOrigin(address: request.url)
        let isDirect = origin.map { ProxySettings.isDirect($0, configuration.proxyExceptions) } ?? false
        let client = isDirect ? directClient ?? client : client
        request.spellLocalhost(of: origin)
        request.headers.add(name: "Accept", value: "application/json")
        request.headers.add(name: "Accept-Encoding", value: "identity")
        request.headers.add(name: "User-Agent", value: "TokenVault")
        let deadline = NIODeadline.now() + TimeAmount(configuration.requestTimeout)
        do {
            let response = try await client.execute(request, deadline: deadline)
            let body: ByteBuffer
            do {
                body = try await self.body(of: response, until: deadline)
            } catch is NIOTooManyBytesError {
                let status = Int(response.status.code)
                throw RefreshFailure(status < 500 ? .unusable(status) : .serverError(status))
            } catch  where Self.isBrokenCompression(error) {
                // The status and the headers count even if the body cannot be read.
                body = ByteBuffer()
            }
            let now = configuration.clock()
            let serverDate = response.headers.first(name: "Date").flatMap { HTTPDate.parse($0, now: now) }
            let retryAfter = response.headers.first(name: "Retry-After").flatMap {
                RetryAfter.time($0, now: now, serverDate: serverDate)
            }
            return Answer(
                status: Int(response.status.code), headers: response.headers,
                body: Array(body.readableBytesView),
                serverDate: serverDate, retryAfter: retryAfter)
        } catch let failure as RefreshFailure {
            throw failure
        } catch {
            var failure = RefreshFailure(Self.kind(of: error))
            failure.isNotTrusted =
                failure.kind == .notSent && (error is NIOSSLError || error is NIOSSLExtraError)
            throw failure
        }
    }

    /// Returns the whole body of `response`. The client's own deadline covers the head only.
    private func body(
        of response: HTTPClientResponse, until deadline: NIODeadline
    ) async throws -> ByteBuffer {
        let (body, limit) = (response.body, configuration.maximumResponseLength)
        let left = deadline - .now()
        return try await withThrowingTaskGroup(of: ByteBuffer?.self) { group in
            group.addTask { try await body.collect(upTo: limit) }
            group.addTask {
                try await Timeout.end(after: .nanoseconds(max(0, left.nanoseconds)))
                return nil
            }
            defer { group.cancelAll() }
            guard let whole = try await group.next() ?? nil else { throw HTTPClientError.deadlineExceeded }
            return whole
        }
    }

    /// Whether a body is not what its coding says, or too long once it is decompressed. An empty body with a coding is broken
    /// as well.
    private static func isBrokenCompression(_ error: any Error) -> Bool {
        error is NIOHTTPDecompression.DecompressionError
            || error is NIOHTTPDecompression.ExtraDecompressionError
    }

    /// Returns the kind of failure for `error`. A request that was given up for any reason counts as timed
    /// out.
    private static func kind(of error: any Error) -> RefreshFailure.Kind {
        if wasNotSent(error) { return .notSent }
        switch error {
        case is CancellationError: return .timedOut
        case let error as ImpossibleStatus: return .unusable(error.status)
        case let error as HTTPClientError:
            let late: [HTTPClientError] = [.deadlineExceeded, .readTimeout, .writeTimeout, .cancelled]
            return late.contains(error) ? .timedOut : .interrupted
        default: return .interrupted
        }
    }

    /// Whether `error` happened while connecting, before any of the request was written.
    static func wasNotSent(_ error: any Error) -> Bool {
        switch error {
        case is NIOConnectionError: return true
        // For an address without a name. An established connection never reports this error.
        case let error as IOError: return Errno(rawValue: error.errnoCode) == .connectionRefused
        case let error as HTTPClientError:
            let early: [HTTPClientError] = [
                .connectTimeout, .tlsHandshakeTimeout, .socksHandshakeTimeout, .httpProxyHandshakeTimeout,
                .getConnectionFromPoolTimeout, .proxyAuthenticationRequired, .invalidProxyResponse,
                .invalidProxyConfiguration, .invalidURL, .emptyHost, .emptyScheme, .alreadyShutdown,
            ]
            return early.contains(error)
        case let error as NIOSSLError:
            if case .handshakeFailed = error { return true }
            return false
        case let error as NIOSSLExtraError: return error == .failedToValidateHostname
        default: return false
        }
    }
}

extension TimeAmount {
    /// Converts a duration, in whole microseconds.
    init(_ duration: Duration) {
        let parts = min(max(duration, .zero), .seconds(86_400)).components
        self = .microseconds(parts.seconds * 1_000_000 + parts.attoseconds / 1_000_000_000_000)
    }
}

/// Redacted, since its connections have requests in them.
extension OAuthTransport: RedactedStringConvertible {}

/// Redacted, since a proxy may have a password.
extension OAuthTransport.Configuration: RedactedStringConvertible {}
#endif
