#if OAuth
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
@testable import TokenVaultOAuth

/// An HTTP server on the loopback that says what a test wants said.
final class ScriptedServer: Sendable {
    struct Asked: Sendable {
        var method: String
        var target: String
        var headers: HTTPHeaders
        var body: String
        var form: [String: String] { FormEncoding.decode(body) ?? [:] }
        var path: String { String(target.prefix { $0 != "?" }) }
    }

    struct Reply: Sendable {
        var status = 200
        var headers: [(String, String)] = []
        var body = ""
        /// The body where it is no text.
        var bytes: [UInt8]?
        /// Ends the connection instead.
        var drops = false
        /// Where it stops, with the connection open.
        var stall: Stall?

        /// Ends the connection in the middle of the body.
        var isCut = false

        enum Stall: Sendable { case beforeHead, inBody }

        static func json(_ body: String, status: Int = 200, headers: [(String, String)] = []) -> Reply {
            Reply(status: status, headers: headers + [("Content-Type", "application/json")], body: body)
        }
        static let dropped = Reply(drops: true)
    }

    typealias Script = @Sendable (Asked) -> Reply

    let port: Int
    private let channel: any Channel
    private let record: Record

    var origin: String { "http://127.0.0.1:\(port)" }
    /// What was asked, in order.
    var asked: [Asked] { record.asked.withLock { $0 } }

    /// How many connections there were.
    var connections: Int { record.connections.withLock { $0 } }

    init(_ script: @escaping Script) async throws {
        let record = Record()
        self.record = record
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    record.connections.withLock { $0 += 1 }
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(Handler(script: script, record: record))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = channel.localAddress?.port ?? 0
    }

    /// One that always says the same.
    convenience init(always reply: Reply) async throws { try await self.init { _ in reply } }

    deinit { channel.close(promise: nil) }

    final class Record: Sendable {
        let asked = Mutex<[Asked]>([])
        let connections = Mutex(0)
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart
        private let script: Script
        private let record: Record
        private var asking: Asked?

        init(script: @escaping Script, record: Record) {
            self.script = script
            self.record = record
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head):
                asking = Asked(
                    method: head.method.rawValue, target: head.uri, headers: head.headers, body: "")
            case .body(let part): asking?.body += String(buffer: part)
            case .end:
                guard let asked = asking else { return }
                asking = nil
                record.asked.withLock { $0.append(asked) }
                answer(script(asked), context)
            }
        }

        private func answer(_ reply: Reply, _ context: ChannelHandlerContext) {
            if reply.drops { return context.close(promise: nil) }
            if reply.stall == .beforeHead { return }
            var headers = HTTPHeaders(reply.headers)
            let more = reply.stall == .inBody || reply.isCut ? 1 : 0
            let body = reply.bytes ?? Array(reply.body.utf8)
            headers.replaceOrAdd(name: "Content-Length", value: "\(body.count + more)")
            let head = HTTPResponseHead(
                version: .http1_1, status: HTTPResponseStatus(statusCode: reply.status), headers: headers)
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: body)))), promise: nil)
            if reply.stall == .inBody { return context.flush() }
            if reply.isCut {
                context.flush()
                return context.close(promise: nil)
            }
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}
#endif
