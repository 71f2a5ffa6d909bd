#if OAuth
internal import TokenVault
internal import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// A provider's error text, as one line that is safe to print on a terminal.
///
/// The text comes from the provider, so only `--verbose` shows it. It has at most 303 visible ASCII characters and
/// spaces. A text that repeats a sent secret is replaced.
struct ProviderErrorText {
    let text: String

    private static let longest = 300

    /// Reads the error in `body` (RFC 6749 section 5.2, or a similar object); `nil` without an error. `secrets` are the
    /// values that were sent.
    init?(_ body: [UInt8], hiding secrets: [String]) {
        guard let document = try? JSONDecoder().decode(Document.self, from: Data(body)) else { return nil }
        self.init(code: document.code, description: document.description, hiding: secrets)
    }

    init?(code: String?, description: String?, hiding secrets: [String]) {
        let parts = [code, description].compactMap(\.self).filter { !$0.isEmpty }
        guard !parts.isEmpty else { return nil }
        // The rest is not shown.
        let whole = String(parts.joined(separator: ": ").unicodeScalars.prefix(Self.longest + 1))
        guard !Self.repeats(secrets, whole) else {
            text = "(the text repeats a secret)"
            return
        }
        let shown = whole.unicodeScalars.prefix(Self.longest).map { scalar in
            (0x20...0x7e).contains(scalar.value) ? Character(scalar) : "?"
        }
        text = String(shown) + (whole.unicodeScalars.count > Self.longest ? "..." : "")
    }

    /// Whether `text` or its decoded form has a part of a secret in it. Eight bytes in a row are a part; a shorter
    /// secret counts whole.
    private static func repeats(_ secrets: [String], _ text: String) -> Bool {
        let bytes = Array(text.utf8)
        let spaced = bytes.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
        let texts = [bytes, decoded(bytes), decoded(spaced)]
        return secrets.contains { secret in
            let secret = Array(secret.utf8)
            let length = min(secret.count, 8)
            guard length >= 4 else { return false }
            let parts = Set((0...secret.count - length).map { secret[$0..<$0 + length] })
            return texts.contains { text in
                guard text.count >= length else { return false }
                return (0...text.count - length).contains { parts.contains(text[$0..<$0 + length]) }
            }
        }
    }

    /// Returns `text` with each `%` and two digits decoded. Other percent signs stay.
    private static func decoded(_ text: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var rest = text[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2)
            if byte == UInt8(ascii: "%"), digits.count == 2,
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            {
                result.append(value)
                rest = rest.dropFirst(2)
            } else {
                result.append(byte)
            }
        }
        return result
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
    /// Reports the error text of `answer`, which refused the request with `form`. Skips `authorization_pending` and
    /// `slow_down`.
    func reportErrorText(
        of answer: OAuthTransport.Answer, _ refusal: RefreshFailure, to form: FormEncoding.Fields,
        _ authentication: RequestAuthentication
    ) {
        guard let onErrorText,
            ![.refused("authorization_pending"), .refused("slow_down")].contains(refusal.kind)
        else { return }
        var secrets = form.filter { name, value in
            !Self.nonSecretFields.contains(name)
                && (Self.secretFields.contains(name) || value.utf8.count >= 8)
        }.map(\.value)
        if let proof = authentication.proof { secrets.append(proof) }
        if case .clientSecretBasic(let secret) = self.authentication {
            let header = authentication.header?.split(separator: " ").last.map(String.init)
            secrets += [secret.unprotectedText(), header].compactMap(\.self)
        }
        if let errorText = ProviderErrorText(answer.body, hiding: secrets) {
            onErrorText(errorText.text)
        }
    }

    /// The form fields that are always secret. Other ones are the provider's own parameters.
    private static let secretFields: Set<String> = [
        "client_assertion", "client_secret", "code", "code_verifier", "device_code", "nonce", "refresh_token",
        "state", "subject_token", "token",
    ]

    /// The form fields without secrets.
    private static let nonSecretFields: Set<String> = [
        "audience", "client_assertion_type", "client_id", "code_challenge", "code_challenge_method",
        "dpop_jkt", "grant_type",
        "prompt", "redirect_uri", "requested_token_type", "resource", "response_mode", "response_type",
        "scope",
        "subject_token_type", "token_type_hint",
    ]
}
#endif
