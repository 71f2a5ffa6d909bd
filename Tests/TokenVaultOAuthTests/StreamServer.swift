#if OAuth
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix
import NIOSSL

/// A server of HTTP/2 on the loopback that answers every request with the heads that it was given.
final class StreamServer: Sendable {
    let port: Int
    private let channel: any Channel

    /// `file` has the server's key and certificate. The last head ends the stream if `ends`.
    init(always heads: [HPACKHeaders], ends: Bool, certificate file: String) async throws {
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile(file).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(file: file, format: .pem)))
        configuration.applicationProtocols = ["h2"]
        let context = try NIOSSLContext(configuration: configuration)
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLServerHandler(context: context))
                    _ = try pipeline.configureHTTP2Pipeline(
                        mode: .server, connectionConfiguration: .init(), streamConfiguration: .init()
                    ) { stream in
                        stream.eventLoop.makeCompletedFuture {
                            try stream.pipeline.syncOperations.addHandler(Handler(heads, ends))
                        }
                    }
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = channel.localAddress?.port ?? 0
    }

    deinit { channel.close(promise: nil) }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTP2Frame.FramePayload
        typealias OutboundOut = HTTP2Frame.FramePayload
        private let heads: [HPACKHeaders]
        private let ends: Bool

        init(_ heads: [HPACKHeaders], _ ends: Bool) {
            self.heads = heads
            self.ends = ends
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard case .headers = unwrapInboundIn(data) else { return }
            for (index, head) in heads.enumerated() {
                let last = ends && index == heads.count - 1
                context.write(wrapOutboundOut(.headers(.init(headers: head, endStream: last))), promise: nil)
            }
            context.flush()
        }
    }
}
#endif
