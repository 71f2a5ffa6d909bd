#if OAuth
internal import TokenVault

/// The answer that a browser delivers (RFC 6749 section 4.1.2), checked to come from the right provider and
/// for the right request.
enum AuthorizationAnswer: Sendable {
    case granted(code: Secret)
    /// The provider's refusal, with its error text; `nil` without one.
    case refused(OAuthError, errorText: String?)

    /// Reads the answer in `query`. Throws `wrongState` for the answer to another request, before any other
    /// check. Throws `wrongIssuer` for the answer of another provider (RFC 9207 section 2.4), and
    /// `malformedResponse`.
    init(query: String, expecting state: Secret, from provider: ProviderMetadata) throws(OAuthError) {
        guard let fields = FormEncoding.decode(query) else { throw .malformedResponse("the query") }
        // Compared in constant time.
        guard let repeated = fields["state"], Secret(utf8: repeated) == state else { throw .wrongState }
        if let issuer = fields["iss"] {
            guard issuer.utf8.elementsEqual(provider.issuer.utf8) else { throw .wrongIssuer }
        }
        if let error = fields["error"] {
            // Providers leave `iss` out of error answers, which carry no code.
            let word = TokenEndpointFailure.word(error)
            self = .refused(
                word == "access_denied" ? .accessDenied : .authorizationRefused(word),
                errorText: ProviderErrorText(
                    code: error, description: fields["error_description"], hiding: [repeated])?.text)
            return
        }
        guard fields["iss"] != nil || !provider.authorizationResponseIssParameterSupported else {
            throw .wrongIssuer
        }
        if let code = fields["code"], !code.isEmpty,
            code.utf8.allSatisfy({ (0x20...0x7e).contains($0) })
        {
            self = .granted(code: Secret(utf8: code))
        } else {
            throw .malformedResponse("the code")
        }
    }

    /// Returns the query of `callback`, an address or a query alone, without a fragment and without quotes and blanks
    /// around it.
    static func fields(of callback: String) -> String {
        let blanks: Set<Character> = [" ", "\t", "\r", "\n", "\r\n", "\"", "'", "<", ">"]
        let address = callback.prefix { $0 != "#" }.drop { blanks.contains($0) }
        let isQuery = !address.contains("://") && address.first != "?"
        let query = isQuery ? address : address.split(separator: "?", maxSplits: 1).last ?? ""
        return String(query.reversed().drop { blanks.contains($0) }.reversed())
    }

    func code() throws(OAuthError) -> String {
        switch self {
        case .granted(let code): return code.unprotectedText() ?? ""
        case .refused(let error, _): throw error
        }
    }
}
#endif
