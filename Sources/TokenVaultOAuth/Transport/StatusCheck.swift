#if OAuth
internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1

/// An answer has a status that is none: those begin at 100 (RFC 9110 section 15).
struct ImpossibleStatus: Error {
    let status: Int
}

/// Refuses answers whose status is less than 100. AsyncHTTPClient 1.37 takes them for the beginning of an answer that is still to
/// come, and ends the process when they end.
final class StatusCheck: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart

    private var isRefused = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isRefused { return }
        if case .head(let head) = unwrapInboundIn(data), head.status.code < 100 {
            isRefused = true
            context.fireErrorCaught(ImpossibleStatus(status: Int(head.status.code)))
            context.close(promise: nil)
            return
        }
        context.fireChannelRead(data)
    }
}

extension HTTPClient.Configuration {
    /// Has each connection of HTTP/1.1 refuse answers that would end the process.
    mutating func checkStatuses() {
        let others = http1_1ConnectionDebugInitializer
        http1_1ConnectionDebugInitializer = { channel in
            channel.eventLoop.makeCompletedFuture {
                let pipeline = channel.pipeline.syncOperations
                let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
                try pipeline.addHandler(StatusCheck(), position: .after(decoder))
            }.flatMap { others?(channel) ?? channel.eventLoop.makeSucceededVoidFuture() }
        }
    }
}
#endif
