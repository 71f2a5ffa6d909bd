#if OAuth
internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHPACK
internal import NIOHTTP1
internal import NIOHTTP2

/// An answer has a status that is none: those are three digits and begin at 100 (RFC 9110 section 15).
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
            context.refuse(Int(head.status.code))
            return
        }
        context.fireChannelRead(data)
    }
}

/// The same for a stream of HTTP/2, where a status is text (RFC 9113 section 8.3.2) and less than nothing ends the process even
/// before. To switch protocols is no answer there (section 8.6): it would be taken for the last one.
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
    /// Ends the request with the error, and its connection or stream with it.
    fileprivate func refuse(_ status: Int) {
        fireErrorCaught(ImpossibleStatus(status: status))
        close(promise: nil)
    }
}

extension HTTPClient.Configuration {
    /// Has every connection refuse answers that would end the process.
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
