#if OAuth
internal import TokenVault
internal import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// What a provider says about its refusal, in one line that can be shown on a terminal.
///
/// The text is the provider's own, so it is shown only to users who ask for it. It has visible ASCII and spaces
/// alone, at most 300 characters, and nothing of what was sent as a secret.
struct ProviderExplanation {
    let text: String

    private static let longest = 300

    /// Reads the error in a body (RFC 6749 section 5.2), also of other shapes; `nil` when it has none. `secrets` are
    /// the values that were sent.
    init?(_ body: [UInt8], hiding secrets: [String]) {
        guard let document = try? JSONDecoder().decode(Document.self, from: Data(body)) else { return nil }
        self.init(code: document.code, description: document.description, hiding: secrets)
    }

    init?(code: String?, description: String?, hiding secrets: [String]) {
        let parts = [code, description].compactMap(\.self).filter { !$0.isEmpty }
        guard !parts.isEmpty else { return nil }
        let whole = parts.joined(separator: ": ")
        // A provider may repeat what it got.
        guard !secrets.contains(where: { $0.utf8.count >= 4 && whole.contains($0) }) else {
            text = "(the text repeats a secret)"
            return
        }
        let shown = whole.unicodeScalars.prefix(Self.longest).map { scalar in
            (0x20...0x7e).contains(scalar.value) ? Character(scalar) : "?"
        }
        text = String(shown) + (whole.unicodeScalars.count > Self.longest ? "..." : "")
    }

    /// The members that name an error, at the top or in an object `error`.
    private struct Document: Decodable {
        let code: String?
        let description: String?

        private enum CodingKeys: String, CodingKey {
            case error, message, code, type
            case description = "error_description"
        }

        init(from decoder: any Decoder) throws {
            let top = try decoder.container(keyedBy: CodingKeys.self)
            let inner = try? top.nestedContainer(keyedBy: CodingKeys.self, forKey: .error)
            func text(_ values: KeyedDecodingContainer<CodingKeys>?, _ keys: CodingKeys...) -> String? {
                keys.lazy.compactMap { try? values?.decode(String.self, forKey: $0) }.first
            }
            code = text(top, .error) ?? text(inner, .code, .type)
            description = text(top, .description, .message) ?? text(inner, .description, .message)
        }
    }
}

extension OAuthClient {
    /// Shows what the provider says in an answer to `form` that is no success. The answers to a device that still
    /// waits are left out.
    func explain(_ answer: OAuthTransport.Answer, to form: FormEncoding.Fields) {
        guard let explained, let failure = TokenEndpointFailure.refusal(in: answer),
            ![.refused("authorization_pending"), .refused("slow_down")].contains(failure.kind)
        else { return }
        var secrets = form.filter { !Self.openFields.contains($0.name) }.map(\.value)
        if case .clientSecretBasic(let secret) = authentication, let text = secret.unprotectedText() {
            secrets.append(text)
        }
        if let explanation = ProviderExplanation(answer.body, hiding: secrets) {
            explained(explanation.text)
        }
    }

    /// The fields of a form that are no secrets.
    private static let openFields: Set<String> = [
        "audience", "client_assertion_type", "client_id", "grant_type", "redirect_uri", "resource", "scope",
        "token_type_hint",
    ]
}
#endif
