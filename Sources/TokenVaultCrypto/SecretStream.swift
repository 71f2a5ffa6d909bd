internal import CSodium

/// A sequence of sealed messages (`crypto_secretstream_xchacha20poly1305`). None can be changed, left out,
/// repeated or moved, and the last one is marked as the last.
package enum SecretStream {
    /// The length of the header that opening needs, in bytes.
    package static let headerLength = 24
    /// The number of bytes that sealing adds to each message.
    package static let overhead = 17

    /// Seals messages. Not for use by several threads.
    package final class Sealer {
        private var state = crypto_secretstream_xchacha20poly1305_state()
        /// The header that ``SecretStream/Opener`` needs to begin. It is not secret.
        package let header: [UInt8]

        /// Creates a stream under `key`. Throws `unavailable` when the key was wiped.
        package init(key: SymmetricKey) throws(CryptoError) {
            guard Sodium.isReady else { throw .unavailable }
            var header = [UInt8](repeating: 0, count: headerLength)
            var state = crypto_secretstream_xchacha20poly1305_state()
            let begun = key.withBytes { key in
                crypto_secretstream_xchacha20poly1305_init_push(&state, &header, key.octets)
            }
            guard begun == 0 else { throw .unavailable }
            self.state = state
            self.header = header
            sodium_memzero(&state, MemoryLayout.size(ofValue: state))
        }

        deinit { sodium_memzero(&state, MemoryLayout.size(ofValue: state)) }

        /// Seals `message`, bound to `associatedData`.
        package func seal(_ message: SecretBytes, associatedData: [UInt8], isLast: Bool) -> [UInt8] {
            let tag = isLast ? crypto_secretstream_xchacha20poly1305_tag_final() : 0
            let total = message.count + overhead
            return [UInt8](unsafeUninitializedCapacity: total) { buffer, initialized in
                message.withUnsafeBytes { message in
                    _ = crypto_secretstream_xchacha20poly1305_push(
                        &state, buffer.octets, nil, message.octets, UInt64(message.count), associatedData,
                        UInt64(associatedData.count), tag)
                }
                initialized = total
            }
        }
    }

    /// Opens the messages that a ``SecretStream/Sealer`` sealed, in the same order. Not for use by several
    /// threads.
    package final class Opener {
        private var state = crypto_secretstream_xchacha20poly1305_state()

        /// Creates the stream that begins with `header` (24 bytes). Throws `invalidParameter` for another
        /// length and `unavailable` when the key was wiped.
        package init(key: SymmetricKey, header: [UInt8]) throws(CryptoError) {
            guard header.count == headerLength else { throw .invalidParameter }
            guard Sodium.isReady else { throw .unavailable }
            var state = crypto_secretstream_xchacha20poly1305_state()
            let begun = key.withBytes { key in
                crypto_secretstream_xchacha20poly1305_init_pull(&state, header, key.octets)
            }
            guard begun == 0 else { throw .unavailable }
            self.state = state
            sodium_memzero(&state, MemoryLayout.size(ofValue: state))
        }

        deinit { sodium_memzero(&state, MemoryLayout.size(ofValue: state)) }

        /// Returns the next message and whether it is the last. Returns `nil` when these bytes were not
        /// sealed at this place of the stream with this associated data.
        package func open(
            _ sealed: [UInt8], associatedData: [UInt8]
        ) -> (message: SecretBytes, isLast: Bool)? {
            guard sealed.count >= overhead else { return nil }
            var tag: UInt8 = 0
            var isAuthentic = false
            let message = SecretBytes(capacity: sealed.count - overhead) { target in
                isAuthentic =
                    crypto_secretstream_xchacha20poly1305_pull(
                        &state, target.octets, nil, &tag, sealed, UInt64(sealed.count), associatedData,
                        UInt64(associatedData.count)) == 0
                return isAuthentic ? target.count : 0
            }
            guard isAuthentic else { return nil }
            return (message, tag == crypto_secretstream_xchacha20poly1305_tag_final())
        }
    }
}
