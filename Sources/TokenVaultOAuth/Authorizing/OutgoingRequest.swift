#if OAuth
internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1
internal import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// One step of a request: to the address that was asked for, or to one that a redirection led to.
struct OutgoingRequest: AuthorizableRequest {
    private(set) var request: HTTPClientRequest
    let isReplayable: Bool
    let origin: RequestOrigin?

    /// A request with `body`, or with the request's own, which may be a stream that comes once.
    init(_ request: consuming HTTPClientRequest, body: ByteBuffer?) {
        origin = RequestOrigin(address: request.url)
        request.spellLocalhost(of: origin)
        isReplayable = body != nil || request.body == nil
        if let body { request.body = .bytes(body) }
        self.request = request
    }

    private init(_ request: HTTPClientRequest, to origin: RequestOrigin?, isReplayable: Bool) {
        self.request = request
        self.origin = origin
        self.isReplayable = isReplayable
    }

    mutating func setHeader(_ name: String, to value: String) {
        request.headers.replaceOrAdd(name: name, value: value)
    }

    /// The next step after `response` (RFC 9110 section 15.4); `nil` when the response is the answer: it is no redirection,
    /// it leads to no address or out of encryption, or its body cannot be sent again. Another origin gets neither the
    /// request's credentials nor the header `secret`.
    func redirected(by response: HTTPClientResponse, without secret: String) -> OutgoingRequest? {
        let status = Int(response.status.code)
        // Most answers are none: no list is made for them.
        guard status == 301 || status == 302 || status == 303 || status == 307 || status == 308,
            let location = response.headers.first(name: "Location"),
            let here = origin, let base = URL(string: request.url),
            // Where a fragment leads is the browser's business.
            let place = URL(string: location, relativeTo: base)?.absoluteString.prefix(while: { $0 != "#" }),
            let there = RequestOrigin(address: String(place)),
            there.scheme == "https" || here.scheme == "http"
        else { return nil }
        var next = request
        next.url = String(place)
        let becomesGet =
            (status == 303 && request.method != .HEAD) || (status <= 302 && request.method == .POST)
        if becomesGet {
            next.method = .GET
            next.body = nil
            for name in ["Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding"] {
                next.headers.remove(name: name)
            }
        } else if !isReplayable {
            return nil
        }
        next.spellLocalhost(of: there)
        next.headers.remove(name: "Host")
        if there != here {
            for name in ["Authorization", "Cookie", "Proxy-Authorization", secret] {
                next.headers.remove(name: name)
            }
        }
        return OutgoingRequest(next, to: there, isReplayable: isReplayable || becomesGet)
    }
}
#endif
