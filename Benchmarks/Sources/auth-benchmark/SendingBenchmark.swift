import AsyncHTTPClient
import Measuring
import NIOCore
import NIOHTTP1
import NIOPosix
import TokenVaultAuth
import TokenVaultOAuth

/// The same request with a header that is put in by hand, by one client and by another, and by ``AuthorizedHTTPClient``: in
/// turns, so that none comes after the same one always. What two clients without a difference differ by is what such a
/// measurement can tell.
enum SendingBenchmark {
    /// Sets of clients, whose connections come to other threads.
    static let sets = 12
    static let rounds = 3_000

    struct Times {
        var bare = Measurement()
        var control = Measurement()
        /// Both of them.
        var byHand = Measurement()
        var authorized = Measurement()
    }

    static func run(_ manager: TokenManager) async throws -> Times {
        // A thread of its own: if the server shared a client's thread, that client would get another result.
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let server = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(Answering())
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        var times = Times()
        for set in 0..<sets { try await run(manager, port: server.localAddress?.port ?? 0, set, &times) }
        try await server.close()
        try await group.shutdownGracefully()
        return times
    }

    private static func run(
        _ manager: TokenManager, port: Int, _ set: Int, _ times: inout Times
    ) async throws {
        let url = "http://127.0.0.1:\(port)/path?query=1"
        let origin = RequestOrigin(scheme: "http", host: "127.0.0.1", port: port)
        var configuration = HTTPClient.Configuration()
        configuration.redirectConfiguration = .disallow
        let bare = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        let control = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        let client = AuthorizedHTTPClient(
            authorizer: TokenAuthProvider(manager: manager, allowedOrigins: [origin]),
            configuration: configuration)
        let header = "Bearer \(try await manager.validAccessToken())"

        func send(with client: HTTPClient) async throws {
            var request = HTTPClientRequest(url: url)
            request.headers.add(name: "Authorization", value: header)
            let response = try await client.execute(request, deadline: .now() + .seconds(60))
            _ = try await response.body.collect(upTo: 1_024)
        }
        func turn(_ number: Int, _ times: inout Times) async throws {
            switch number % 3 {
            case 0:
                try await times.bare.time { try await send(with: bare) }
                times.byHand.add(times.bare.last)
            case 1:
                try await times.control.time { try await send(with: control) }
                times.byHand.add(times.control.last)
            default:
                try await times.authorized.time {
                    _ = try await client.execute(HTTPClientRequest(url: url)).body.collect(upTo: 1_024)
                }
            }
        }
        // The order changes with each round. The first rounds make the connections and do not count.
        var unused = Times()
        for round in 0..<rounds + 100 {
            let order = (round + set) % 2 == 0 ? [0, 1, 2] : [2, 1, 0]
            for place in order {
                if round < 100 {
                    try await turn(place + round / 2, &unused)
                } else {
                    try await turn(place + round / 2, &times)
                }
            }
        }
        try await client.shutdown()
        try await control.shutdown()
        try await bare.shutdown()
    }

    /// Says OK, with the headers that servers give.
    private final class Answering: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private static let headers: HTTPHeaders = [
            "Date": "Sun, 06 Nov 1994 08:49:37 GMT", "Content-Type": "text/plain", "Content-Length": "2",
        ]

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard case .end = unwrapInboundIn(data) else { return }
            let head = HTTPResponseHead(version: .http1_1, status: .ok, headers: Self.headers)
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: "ok")))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}
