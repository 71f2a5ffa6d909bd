internal import TokenVaultCrypto

/// Nonces for sign-in requests, in the forms that providers expect.
public enum SignInNonce {
    /// Returns `length` unpredictable characters of `0-9A-Za-z-._` (libsodium's `randombytes_buf`), all equally
    /// likely. For use as a nonce or a state.
    public static func randomNonceString(length: Int = 32) -> String {
        let characters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._".utf8)
        var text: [UInt8] = []
        while text.count < length {
            // Without this bound, the first characters would be more likely than the others.
            let bound = 256 - 256 % characters.count
            text += Random.bytes(length - text.count).filter { Int($0) < bound }
                .map { characters[Int($0) % characters.count] }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the SHA-256 digest of the UTF-8 bytes of `text` in 64 lower-case hexadecimal digits. Some
    /// providers expect a nonce in this form.
    public static func sha256(_ text: String) -> String {
        Random.hexadecimal(Hash.sha256(Array(text.utf8)))
    }
}
