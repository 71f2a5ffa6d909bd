#if OAuth
public import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
public import NIOSSL
internal import SystemPackage
public import TokenVaultAuth

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

/// How requests reach a provider: certificates are checked, redirections are not followed, every wait and every answer is
/// bounded. One can serve several clients.
///
/// Each request has a connection of its own: one that was kept could be closed by the server just when a refresh token is
/// sent on it, and whether the token was taken would not be known.
public final class OAuthTransport: Sendable {
    /// Bounds and trust.
    public struct Configuration: Sendable {
        /// How long a connection may take, its encryption included. Default: 10 s.
        public var connectTimeout: Duration = .seconds(10)
        /// How long a request may take from its beginning to the end of the answer. Default: 30 s.
        public var requestTimeout: Duration = .seconds(30)
        /// The longest answer, in bytes. Default: 1 MiB.
        public var maximumResponseLength = 1 << 20
        /// Which certificates are trusted; `nil` for those the system trusts.
        public var tlsConfiguration: TLSConfiguration?
        /// A proxy to go through; `nil` for none. The environment is not read.
        public var proxy: HTTPClient.Configuration.Proxy?
        /// The clock that `Retry-After` is counted from.
        public var clock: @Sendable () -> Date = { Date() }

        /// The defaults.
        public init() {}
    }

    /// The bounds.
    public let configuration: Configuration
    private let client: HTTPClient

    /// A transport on the threads that all of the process's networking shares.
    public init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
        client = HTTPClient(
            eventLoopGroupProvider: .singleton, configuration: Self.settings(for: configuration))
    }

    static func settings(for configuration: Configuration) -> HTTPClient.Configuration {
        var settings = HTTPClient.Configuration(
            tlsConfiguration: configuration.tlsConfiguration, redirectConfiguration: .disallow)
        settings.timeout.connect = TimeAmount(configuration.connectTimeout)
        settings.proxy = configuration.proxy
        settings.httpVersion = .http1Only
        settings.maximumUsesPerConnection = 1
        // That a connection was refused is said at once: who asks waits and tries again.
        settings.connectionPool.retryConnectionEstablishment = false
        settings.checkStatuses()
        settings.resolveLocalhostLiterally()
        return settings
    }

    deinit {
        // A client that was not shut down ends the process.
        Task { [client] in try? await client.shutdown() }
    }

    /// What a server answered, whole.
    struct Answer: Sendable {
        let status: Int
        let headers: HTTPHeaders
        let body: [UInt8]
        /// The `Date` header.
        let serverDate: Date?
        /// When `Retry-After` ends, on this machine's clock.
        let retryAfter: Date?
        /// Whether the server did what it was asked (RFC 9110 section 15.3).
        var isSuccess: Bool { (200...299).contains(status) }
    }

    func get(_ address: WebAddress) async -> Result<Answer, RefreshFailure> {
        await send(HTTPClientRequest(url: address.text))
    }

    /// Sends `form`. The copy of it that is on its way is not wiped.
    func post(
        _ form: FormEncoding.Fields, to address: WebAddress, authorization: String? = nil
    ) async -> Result<Answer, RefreshFailure> {
        var request = HTTPClientRequest(url: address.text)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/x-www-form-urlencoded")
        if let authorization { request.headers.add(name: "Authorization", value: authorization) }
        request.body = .bytes(ByteBuffer(string: FormEncoding.encode(form)))
        return await send(request)
    }

    private func send(_ request: HTTPClientRequest) async -> Result<Answer, RefreshFailure> {
        var request = request
        request.spellLocalhost(of: RequestOrigin(address: request.url))
        request.headers.add(name: "Accept", value: "application/json")
        request.headers.add(name: "User-Agent", value: "TokenVault")
        let deadline = NIODeadline.now() + TimeAmount(configuration.requestTimeout)
        do {
            let response = try await client.execute(request, deadline: deadline)
            let body: ByteBuffer
            do { body = try await self.body(of: response, until: deadline) } catch is NIOTooManyBytesError {
                return .failure(RefreshFailure(.unusable(Int(response.status.code))))
            }
            let now = configuration.clock()
            let serverDate = response.headers.first(name: "Date").flatMap { HTTPDate.parse($0, now: now) }
            let retryAfter = response.headers.first(name: "Retry-After").flatMap {
                RetryAfter.time($0, now: now, serverDate: serverDate)
            }
            return .success(
                Answer(
                    status: Int(response.status.code), headers: response.headers,
                    body: Array(body.readableBytesView),
                    serverDate: serverDate, retryAfter: retryAfter))
        } catch {
            var failure = RefreshFailure(Self.kind(of: error))
            failure.isNotTrusted =
                failure.kind == .notSent && (error is NIOSSLError || error is NIOSSLExtraError)
            return .failure(failure)
        }
    }

    /// The body of `response`, whole. The client's deadline is for the head alone.
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

    /// What `error` tells of the request. One that was given up, for whatever reason, has had no answer in its time.
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

    /// Whether `error` is one of making the connection, before anything of the request was written.
    static func wasNotSent(_ error: any Error) -> Bool {
        switch error {
        case is NIOConnectionError: return true
        // Of an address without a name. No connection that was made says this.
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
    /// As long, in whole microseconds.
    init(_ duration: Duration) {
        let parts = min(max(duration, .zero), .seconds(86_400)).components
        self = .microseconds(parts.seconds * 1_000_000 + parts.attoseconds / 1_000_000_000_000)
    }
}

/// Its connections have requests in them.
extension OAuthTransport: RedactedStringConvertible {}

/// A proxy may have a password.
extension OAuthTransport.Configuration: RedactedStringConvertible {}
#endif
