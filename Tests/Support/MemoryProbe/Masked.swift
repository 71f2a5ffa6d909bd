import TokenVault
import TokenVaultCrypto

/// Random letters under a mask.
struct Masked {
    let length: Int
    private let mask: [UInt8]
    private let masked: [UInt8]

    init(length: Int) {
        self.length = length
        let mask = (0..<length).map { _ in UInt8.random(in: .min ... .max) }
        masked = mask.map { $0 ^ UInt8.random(in: 0x61...0x7a) }
        self.mask = mask
    }

    /// The letters, in memory that is wiped.
    var secret: Secret {
        Secret(bytes)
    }

    private var bytes: SecretBytes {
        SecretBytes(capacity: length) { target in
            for index in 0..<length { target[index] = masked[index] ^ mask[index] }
            return length
        }
    }

    func needle(_ name: String) -> Needle { bytes.withUnsafeBytes { Needle(name, $0, from: 24) } }
}
