#if OAuth
internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHPACK
internal import NIOHTTP1
internal import NIOHTTP2

/// The error for an invalid status: a status has three digits and begins at 100 (RFC 9110 section 15).
struct ImpossibleStatus: Error {
    let status: Int
}

/// Rejects responses with a status below 100. AsyncHTTPClient 1.37 reads such a response as the beginning of
/// a later one, and ends the process when it ends.
final class StatusCheck: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart

    private var isRefused = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isRefused { return }
        if case .head(let head) = unwrapInboundIn(data), head.status.code < 100 {
            isRefused = true
            context.refuse(Int(head.status.code))
            return
        }
        context.fireChannelRead(data)
    }
}

/// The same check for an HTTP/2 stream, where the status is text (RFC 9113 section 8.3.2). A negative status
/// would end the process even earlier. Also rejects status 101, which HTTP/2 does not have (section 8.6): the
/// client would read it as the final response.
final class StreamStatusCheck: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias InboundOut = HTTP2Frame.FramePayload

    private var isRefused = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isRefused { return }
        if case .headers(let block) = unwrapInboundIn(data), let text = block.headers.first(name: ":status"),
            !Self.isStatus(text)
        {
            isRefused = true
            context.refuse(Int(text) ?? 0)
            return
        }
        context.fireChannelRead(data)
    }

    private static func isStatus(_ text: String) -> Bool {
        let digits = text.utf8
        return digits.count == 3 && digits.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            && digits.first != UInt8(ascii: "0") && text != "101"
    }
}

extension ChannelHandlerContext {
    /// Ends the request with the error, and closes its connection or stream.
    fileprivate func refuse(_ status: Int) {
        fireErrorCaught(ImpossibleStatus(status: status))
        close(promise: nil)
    }
}

extension HTTPClient.Configuration {
    /// Makes every connection reject responses that would end the process.
    mutating func checkStatuses() {
        let (others, streamOthers) = (http1_1ConnectionDebugInitializer, http2StreamChannelDebugInitializer)
        http1_1ConnectionDebugInitializer = { channel in
            channel.eventLoop.makeCompletedFuture {
                let pipeline = channel.pipeline.syncOperations
                let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
                try pipeline.addHandler(StatusCheck(), position: .after(decoder))
            }.flatMap { others?(channel) ?? channel.eventLoop.makeSucceededVoidFuture() }
        }
        http2StreamChannelDebugInitializer = { channel in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(StreamStatusCheck(), position: .first)
            }.flatMap { streamOthers?(channel) ?? channel.eventLoop.makeSucceededVoidFuture() }
        }
    }
}
#endif
