#if OAuth
internal import AsyncHTTPClient
internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL
internal import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// One step of a request: to the requested address, or to the target of a redirect.
struct OutgoingRequest: AuthorizableRequest {
    private(set) var request: HTTPClientRequest
    let isReplayable: Bool
    let origin: RequestOrigin?
    /// Whether the request has a proof that this client signed.
    private var hasProof = false

    /// Creates a step with `body`, or with the body of `request`, which may be a stream that can be read
    /// once.
    init(_ request: consuming HTTPClientRequest, body: ByteBuffer?) {
        origin = RequestOrigin(address: request.url)
        request.spellLocalhost(of: origin)
        request.tlsConfiguration?.requireForwardSecrecy()
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

    /// Sets the header `DPoP` to `proof`; `nil` removes a previous proof.
    mutating func setProof(_ proof: String?) {
        if let proof {
            setHeader("DPoP", to: proof)
        } else if hasProof {
            request.headers.remove(name: "DPoP")
        }
        hasProof = proof != nil
    }

    /// Returns the next step after `response` (RFC 9110 section 15.4); `nil` when the response is final. A
    /// response is final if it is no redirect, or leads to no address or out of encryption. It is also final
    /// if the request's body cannot be sent again. Another origin gets neither the request's credentials nor
    /// the header `secret`.
    func redirected(by response: HTTPClientResponse, without secret: String) -> OutgoingRequest? {
        let status = Int(response.status.code)
        // Most responses are not redirects, so this check avoids building a list.
        guard status == 301 || status == 302 || status == 303 || status == 307 || status == 308,
            let location = response.headers.first(name: "Location"),
            let here = origin, let base = URL(string: request.url),
            // The fragment matters to a browser only.
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
            for name in ["Authorization", "Cookie", "DPoP", "Proxy-Authorization", secret] {
                next.headers.remove(name: name)
            }
        }
        var step = OutgoingRequest(next, to: there, isReplayable: isReplayable || becomesGet)
        step.hasProof = hasProof
        return step
    }
}
#endif
