#if OAuth
internal import NIOCore
internal import NIOHTTP1

/// One connection of a browser to the listener: one request and one page, then it closes.
final class RedirectHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let answers: AnswerBox
    private var isAnswered = false
    private var isOfSameUser = false
    /// A form that is arriving (`response_mode=form_post`), with its head.
    private var form: (head: HTTPRequestHead, text: ByteBuffer)?

    /// The longest form, in bytes.
    private static let maximumFormLength = 16 << 10

    init(answers: AnswerBox) { self.answers = answers }

    func channelActive(context: ChannelHandlerContext) {
        // Checked while the other end certainly exists.
        isOfSameUser = LoopbackPeer.isOfSameUser(context.channel)
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isAnswered else { return }
        switch unwrapInboundIn(data) {
        case .head(let head) where isOfSameUser && head.method == .POST && answers.isAnswer(head.uri):
            form = (head, ByteBuffer())
        case .head(let head): answer(head, nil, context)
        case .body(var part):
            guard form != nil else { return }
            form?.text.writeBuffer(&part)
            guard let form, form.text.readableBytes > Self.maximumFormLength else { return }
            isAnswered = true
            write(Page(.wrongRequest), for: form.head, context)
        case .end:
            guard let form else { return }
            answer(form.head, String(buffer: form.text), context)
        }
    }

    private func answer(_ head: HTTPRequestHead, _ form: String?, _ context: ChannelHandlerContext) {
        isAnswered = true
        let hosts = head.headers["Host"]
        let isAllowedMethod = head.method == .GET || form != nil
        let reply: AnswerBox.Reply =
            if !isOfSameUser {
                .otherUser
            } else if isAllowedMethod {
                answers.take(head.uri, form: form, host: hosts.count == 1 ? hosts[0] : nil)
            } else {
                .notFound
            }
        write(Page(reply), for: head, context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is IdleStateHandler.IdleStateEvent {
            context.close(promise: nil)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func write(_ page: Page, for head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        let body = context.channel.allocator.buffer(string: page.html)
        var headers = HTTPHeaders([
            ("Content-Type", "text/html; charset=utf-8"), ("Content-Length", "\(body.readableBytes)"),
            ("Connection", "close"), ("Cache-Control", "no-store"), ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
        ])
        headers.add(name: "Content-Security-Policy", value: "default-src 'none'; frame-ancestors 'none'")
        if let location = page.location { headers.add(name: "Location", value: location) }
        let response = HTTPResponseHead(version: .http1_1, status: page.status, headers: headers)
        context.write(wrapOutboundOut(.head(response)), promise: nil)
        if head.method != .HEAD { context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil) }
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in channel.close(promise: nil) }
    }
}

/// The page that the user sees in the browser. It has nothing of the request in it.
private struct Page {
    let status: HTTPResponseStatus
    var location: String?
    let html: String

    init(_ reply: AnswerBox.Reply) {
        let title: String
        let text: String
        switch reply {
        case .signedIn:
            (status, title, text) = (
                .ok, "Done", "The program completes the sign-in. You can close this window."
            )
        case .notSignedIn:
            (status, title, text) = (
                .ok, "Not signed in",
                "The provider did not sign you in. You can close this window and go back."
            )
        case .wrongRequest:
            (status, title, text) = (
                .badRequest, "Not signed in", "This is the answer to another request. Sign in again."
            )
        case .otherUser:
            (status, title, text) = (
                .forbidden, "Not signed in",
                "This browser belongs to another user than the program that waits for the sign-in."
            )
        case .redirect(let address):
            (status, title, text) = (.found, "Sign in", "The browser continues to the provider.")
            location = address
        case .notFound: (status, title, text) = (.notFound, "Nothing here", "There is no such page.")
        }
        html = """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8"><title>\(title)</title></head>
            <body><h1>\(title)</h1><p>\(text)</p></body></html>

            """
    }
}
#endif
