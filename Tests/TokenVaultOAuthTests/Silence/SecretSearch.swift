#if OAuth
import Foundation
import Synchronization
@testable import TokenVaultOAuth

/// The secrets of a test, and the forms in which a leaked one would show. A secret may appear unchanged, in
/// an address, in Base64, in hexadecimal, or cut off after twelve characters.
final class SecretSearch: Sendable {
    private let secrets = Mutex<Set<String>>([])

    /// A new secret, with characters that an address and JSON write otherwise.
    func make() -> String {
        let random = UUID().uuidString.lowercased().replacing("-", with: "")
        let secret = "\(random.prefix(9))/+\(random.dropFirst(9))=~"
        add(secret)
        return secret
    }

    /// Adds a secret that another program made, and the parts of a JSON Web Token. Leaves out anything
    /// shorter than twelve bytes.
    func add(_ secret: String?) {
        guard let secret else { return }
        let parts = secret.split(separator: ".").map(String.init)
        secrets.withLock { $0.formUnion(([secret] + parts).filter { $0.utf8.count >= 12 }) }
    }

    var count: Int { secrets.withLock { $0.count } }

    /// The secrets that are in `text` in some form, each with what is around it in one place.
    func found(in text: String) -> [String: String] {
        // Indexes the forms by their first eight bytes, so that one pass looks for all of them.
        var beginnings: [UInt64: [(form: [UInt8], secret: String)]] = [:]
        for secret in secrets.withLock({ $0 }) {
            for form in Self.forms(of: secret).map({ Array($0.utf8) }) {
                beginnings[form.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }, default: []].append(
                    (form, secret))
            }
        }
        var found: [String: String] = [:]
        let bytes = Array(text.utf8)
        var window: UInt64 = 0
        for (index, byte) in bytes.enumerated() {
            window = window << 8 | UInt64(byte)
            guard index >= 7, let candidates = beginnings[window] else { continue }
            for (form, secret) in candidates where bytes[(index - 7)...].starts(with: form) {
                let around = max(0, index - 100)..<min(bytes.count, index + 50)
                found[secret] = String(decoding: bytes[around], as: UTF8.self)
            }
        }
        return found
    }

    static func forms(of secret: String) -> Set<String> {
        let start = String(secret.prefix(12))
        let bytes = Array(start.utf8)
        let encoded = FormEncoding.encode(secret)
        var forms: Set<String> = [
            start, String(encoded.prefix(12)), String(encoded.prefix(24)).lowercased(),
            start.replacing("/", with: "\\/"), start.replacing("+", with: "\\u002b"),
        ]
        for (separator, isUpper) in [("", false), ("", true), (" ", false), (" ", true)] {
            forms.insert(
                bytes.map { String(format: isUpper ? "%02X" : "%02x", $0) }.joined(separator: separator))
        }
        forms.insert(bytes.map(String.init).joined(separator: ", "))
        // Base64 differs with the place where a text begins. Only the characters that come from the secret
        // count.
        for offset in 0..<3 {
            let whole = (Data(repeating: 0x20, count: offset) + bytes).base64EncodedString()
            let own = whole.dropFirst(offset == 0 ? 0 : offset + 1).prefix(14 - offset)
            forms.insert(String(own))
            forms.insert(String(own).replacing("+", with: "-").replacing("/", with: "_"))
        }
        return forms
    }
}
#endif
