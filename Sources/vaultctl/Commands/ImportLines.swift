import TokenVault
import TokenVaultPlatform

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// Reads items from lines of JSON, one object a line, as `retrieve --json` prints them.
struct ImportLines {
    private let service: String
    private let defaultPolicy: AccessPolicy
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
            var end = start
            while end < bytes.count, bytes[end] != UInt8(ascii: "\n") { end += 1 }
            number += 1
            if !isBlank(bytes, start..<end) { items.append(try item(bytes, start..<end, number)) }
            if number.isMultiple(of: 1_024) { progress(end, bytes.count) }
            start = end + 1
        }
        return items
    }

    private func isBlank(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        range.allSatisfy { [0x20, 0x09, 0x0d].contains(bytes[$0]) }
    }

    private func item(
        _ bytes: [UInt8], _ range: Range<Int>, _ number: Int
    ) throws(CommandFailure) -> TokenItem {
        let line: ItemLine
        do throws(ItemLine.Mistake) { line = try ItemLine(bytes, in: range) } catch {
            switch error {
            case .notAnItem:
                throw Self.mistake(
                    number,
                    "is not a JSON object with a key and texts, as {\"key\": \"a\", \"value\": \"b\"} is")
            case .notBase64: throw Self.mistake(number, "has a valueBase64 that is not Base64")
            case .notOneValue: throw Self.mistake(number, "needs value or valueBase64, and one of them only")
            }
        }
        var policy = defaultPolicy
        if let name = line.policy {
            guard let named = AccessPolicy(rawValue: name) else {
                throw Self.mistake(
                    number,
                    "has a policy that there is not: use one of "
                        + AccessPolicy.allCases.map(\.rawValue).joined(separator: ", "))
            }
            policy = named
        }
        var expires: Date?
        if let text = line.expires {
            guard let date = Timestamp.date(text) else {
                throw Self.mistake(
                    number, "has an expiry that is no time of RFC 3339, as 2027-01-31T12:00:00Z is")
            }
            expires = date
        }
        let label = line.label.flatMap { $0.isEmpty ? nil : $0 }
        return TokenItem(
            metadata: TokenMetadata(
                key: TokenKey(line.key), service: line.service ?? service, policy: policy, label: label,
                attributes: line.attributes, created: now, modified: now, expires: expires,
                generation: Generation(rawValue: 0)),
            secret: line.secret)
    }

    private static func mistake(_ number: Int, _ what: String) -> CommandFailure {
        CommandFailure(
            .usage, "line \(number) \(what)",
            "nothing was imported; each line is like what \"vaultctl retrieve --json\" prints")
    }
}
