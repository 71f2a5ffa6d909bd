import TokenVault
import TokenVaultPlatform

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// Reads items from lines of JSON, one object a line, as `retrieve --json` prints them.
struct ImportLines {
    /// A line, as JSON has it. What the vault decides itself (generation, dates) is read over.
    private struct Line: Decodable {
        var service: String?
        var key: String
        var value: String?
        var valueBase64: String?
        var policy: String?
        var label: String?
        var attributes: [String: String]?
        var expires: String?
    }

    private let service: String
    private let defaultPolicy: AccessPolicy
    private let decoder = JSONDecoder()
    private let now = Date()

    /// Lines that name no service or policy get these.
    init(service: String, defaultPolicy: AccessPolicy) {
        self.service = service
        self.defaultPolicy = defaultPolicy
    }

    /// The most that is read: a line takes at least as much again in the vault.
    static let longestInput = 1 << 30

    /// The items of `bytes`. A line that is no item is told by its number and never repeated.
    func items(
        in bytes: [UInt8], progress: (Int, Int) -> Void
    ) throws(CommandFailure) -> [TokenItem] {
        var items: [TokenItem] = []
        var number = 0
        var start = 0
        while start < bytes.count {
            let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
            number += 1
            if !bytes[start..<end].allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0d }) {
                items.append(try item(bytes[start..<end], number))
            }
            if number.isMultiple(of: 1_024) { progress(end, bytes.count) }
            start = end + 1
        }
        return items
    }

    private func item(_ bytes: ArraySlice<UInt8>, _ number: Int) throws(CommandFailure) -> TokenItem {
        var data = Data(bytes)
        defer { data.resetBytes(in: 0..<data.count) }
        let line: Line
        do { line = try decoder.decode(Line.self, from: data) } catch {
            throw Self.mistake(number, "is not a JSON object with a key and texts")
        }
        let secret: Secret
        switch (line.value, line.valueBase64) {
        case (let text?, nil): secret = Secret(utf8: text)
        case (nil, let text?):
            guard var decoded = Data(base64Encoded: text) else {
                throw Self.mistake(number, "has a valueBase64 that is not Base64")
            }
            defer { decoded.resetBytes(in: 0..<decoded.count) }
            secret = Secret(decoded)
        default: throw Self.mistake(number, "needs value or valueBase64, and one of them only")
        }
        var policy = defaultPolicy
        if let name = line.policy {
            guard let named = AccessPolicy(rawValue: name) else {
                throw Self.mistake(number, "has a policy that there is not")
            }
            policy = named
        }
        var expires: Date?
        if let text = line.expires {
            guard let date = Timestamp.date(text) else {
                throw Self.mistake(number, "has an expiry that is no time of RFC 3339")
            }
            expires = date
        }
        var attributes = TokenAttributes()
        for (name, value) in line.attributes ?? [:] { attributes[name] = value }
        let label = line.label.flatMap { $0.isEmpty ? nil : $0 }
        return TokenItem(
            metadata: TokenMetadata(
                key: TokenKey(line.key), service: line.service ?? service, policy: policy, label: label,
                attributes: attributes, created: now, modified: now, expires: expires,
                generation: Generation(rawValue: 0)),
            secret: secret)
    }

    private static func mistake(_ number: Int, _ what: String) -> CommandFailure {
        CommandFailure(
            .usage, "line \(number) \(what)",
            "nothing was imported; each line is like what \"vaultctl retrieve --json\" prints")
    }
}
