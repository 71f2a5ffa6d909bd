#if OAuth
internal import TokenVault
internal import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

extension OAuthClient {
    /// Sends `request` to the provider ahead of the browser, which then takes only a reference to it (RFC 9126). Other
    /// programs then cannot read or change the request on its way through the browser.
    ///
    /// Returns the request to open. That is `request` itself if the provider has no endpoint for this, or rejects the
    /// push without requiring it. If the metadata requires pushed requests, throws `invalidMetadata` without a usable
    /// endpoint, and `requestFailed`, `malformedResponse`. Always throws `cancelled` after a cancellation.
    public func pushed(_ request: AuthorizationRequest) async throws(OAuthError) -> AuthorizationRequest {
        do throws(OAuthError) {
            guard let address = try pushedRequestEndpoint() else { return request }
            return try await push(request, to: address)
        } catch {
            if Task.isCancelled { throw .cancelled }
            guard !provider.requiresPushedAuthorizationRequests else { throw error }
            return request
        }
    }

    /// Returns the endpoint, at any origin: no user is sent there. Throws `invalidMetadata`.
    private func pushedRequestEndpoint() throws(OAuthError) -> WebAddress? {
        guard !provider.unusable.contains(.pushedRequest) else {
            throw .invalidMetadata(ProviderMetadata.Endpoint.pushedRequest.rawValue)
        }
        guard let address = provider.pushedAuthorizationRequestEndpoint.flatMap(WebAddress.secure) else {
            guard !provider.requiresPushedAuthorizationRequests else {
                throw .invalidMetadata(ProviderMetadata.Endpoint.pushedRequest.rawValue)
            }
            return nil
        }
        return address
    }

    private func push(
        _ request: AuthorizationRequest, to address: WebAddress
    ) async throws(OAuthError) -> AuthorizationRequest {
        let answer: OAuthTransport.Answer
        do throws(RefreshFailure) { answer = try await post(request.fields, to: address) } catch {
            throw .requestFailed(error.withoutRefreshToken)
        }
        guard let reference = try? JSONDecoder().decode(Reference.self, from: Data(answer.body)),
            (1...512).contains(reference.requestURI.utf8.count),
            reference.requestURI.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
        else { throw .malformedResponse("the request_uri") }
        return request.referring(to: reference.requestURI, as: clientID)
    }

    private struct Reference: Decodable {
        let requestURI: String
        private enum CodingKeys: String, CodingKey { case requestURI = "request_uri" }
    }
}
#endif
