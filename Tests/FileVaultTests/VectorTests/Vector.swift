import Testing
import TokenVault

@testable import TokenVaultFile

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One of the published vectors, as `Tests/Vectors/manifest.json` has it; the README beside that says what each
/// member means.
struct Vector: Decodable, Sendable, CustomTestStringConvertible {
    let name: String
    let file: String
    let length: Int?
    let changes: [Change]?
    let by: String
    let fields: [String]
    let openings: [Opening]

    var testDescription: String { name }
    var isExport: Bool { file.hasPrefix("exports/") }

    struct Change: Decodable, Sendable {
        let at: Int
        let bytes: String
    }

    /// A way to open it, and what comes of that.
    struct Opening: Decodable, Sendable {
        // The unlock method.
        let passphrase: String?
        let passphraseBase64: Data?
        let keyFile: String?
        let keyFileBase64: Data?
        let keyringKey: String?
        let recoveryKey: String?
        let state: String?
        let lockedAgain: Bool?

        // The reason of a failure.
        let code: String?
        let at: String?
        let offset: Int?

        // The expected contents.
        let vault: String?
        let epoch: UInt64?
        let sequence: UInt64?
        let keybagGeneration: UInt64?
        let slot: Int?
        let items: [Item]?
        let unreadable: [Refusal]?
        let problems: [Int]?
        let isTorn: Bool?
    }

    struct Item: Decodable, Sendable {
        let service: String
        let key: String
        let value: String?
        let valueBase64: Data?
        let policy: String
        let policyOrigin: String?
        let label: String?
        let attributes: [[String]]?
        let created: Int64
        let modified: Int64
        let expires: Int64?
        let generation: UInt64?
    }

    /// An item that is there and cannot be read.
    struct Refusal: Decodable, Sendable {
        let service: String?
        let key: String?
        let number: [UInt64]?
        let policy: Policy
        let generation: UInt64
        let code: String
        let offset: Int?
    }

    /// A policy by its name, or by its number where it has none.
    struct Policy: Decodable, Sendable {
        let number: UInt8

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let number = try? container.decode(UInt8.self) {
                self.number = number
            } else {
                number = try #require(AccessPolicy(rawValue: try container.decode(String.self))).number
            }
        }
    }
}

extension Vector.Opening {
    /// What opens it. A recovery key that is mistyped is refused when it is read.
    func method() throws -> UnlockMethod {
        if let passphrase { return .passphrase(Secret(utf8: passphrase)) }
        if let passphraseBase64 { return .passphrase(Secret(passphraseBase64)) }
        if let keyFile { return .keyFile(Secret(utf8: keyFile)) }
        if let keyFileBase64 { return .keyFile(Secret(keyFileBase64)) }
        if let keyringKey { return .secretService(Secret(try hexadecimal(keyringKey))) }
        return .recoveryKey(try RecoveryKey(Secret(utf8: try #require(recoveryKey))))
    }
}

extension Vector.Item {
    /// The item as the library has it.
    func expected() throws -> TokenItem {
        let metadata = TokenMetadata(
            key: TokenKey(key), service: service, policy: try #require(AccessPolicy(rawValue: policy)),
            label: label,
            attributes: TokenAttributes((attributes ?? []).map { ($0[0], $0[1]) }),
            created: date(created),
            modified: date(modified), expires: expires.map { date($0) },
            generation: Generation(rawValue: generation ?? 0),
            isPolicyFromLimitedSession: policyOrigin == "limited-session")
        let secret = try valueBase64.map { Secret($0) } ?? Secret(utf8: #require(value))
        return TokenItem(metadata: metadata, secret: secret)
    }

    private func date(_ milliseconds: Int64) -> Date {
        Date(timeIntervalSince1970: Double(milliseconds) / 1_000)
    }
}

/// The bytes of hexadecimal digits.
func hexadecimal(_ digits: String) throws -> [UInt8] {
    let digits = Array(digits.utf8)
    return try stride(from: 0, to: digits.count, by: 2).map { place in
        let pair = String(decoding: digits[place..<min(place + 2, digits.count)], as: UTF8.self)
        return try #require(UInt8(pair, radix: 16))
    }
}
