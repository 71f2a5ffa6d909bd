import TokenVault
import TokenVaultPlatform

#if canImport(FoundationEssentials)
import FoundationEssentials
import ProgramSupport
#endif

/// Reads items from lines of JSON, one object a line, as `retrieve --json` prints them.
struct ImportLines {
    private let service: String
    private let defaultPolicy: AccessPolicy
    private let ignoresUnknown: Bool
    private let now = Date()
    /// The number of ignored members that no item has.
    private(set) var unknownMembers = 0

    /// Creates a reader. `service` and `defaultPolicy` apply to lines without a service or a policy.
    init(service: String, defaultPolicy: AccessPolicy, ignoresUnknown: Bool) {
        self.ignoresUnknown = ignoresUnknown
        self.service = service
        self.defaultPolicy = defaultPolicy
    }

    /// The longest input, in bytes. A line takes at least as many bytes again in the vault.
    static let longestInput = 1 << 30

    /// Returns the items of `bytes`. An error names an invalid line by its number and never repeats the line.
    mutating func items(
        in bytes: [UInt8], until deadline: Deadline? = nil, progress: (Int, Int) -> Void
    ) throws(CommandFailure) -> [TokenItem] {
        var items: [TokenItem] = []
        var lines: [Name: Int] = [:]
        var number = 0
        var start = 0
        while start < bytes.count {
            var end = start
            while end < bytes.count, bytes[end] != UInt8(ascii: "\n") { end += 1 }
            number += 1
            if !isBlank(bytes, start..<end) {
                let item = try checked(try item(bytes, start..<end, number), number)
                let name = Name(item.metadata)
                if let earlier = lines.updateValue(number, forKey: name) {
                    throw Self.mistake(
                        number, "has the key of line \(earlier), and an import stores each key once")
                }
                items.append(item)
            }
            if number.isMultiple(of: 1_024) {
                if let deadline, deadline.hasPassed {
                    throw CommandFailure(
                        .timedOut, "timed out reading the lines", "try again with a longer --timeout"
                    ).withNothingImported
                }
                progress(end, bytes.count)
            }
            start = end + 1
        }
        return items
    }

    /// Whether `beginning` is the beginning of a file of lines. An export never begins that way.
    static func seemToBegin(_ beginning: [UInt8]) -> Bool {
        let mark: [UInt8] = [0xef, 0xbb, 0xbf]
        let text = beginning.starts(with: mark) ? beginning.dropFirst(mark.count) : beginning[...]
        return text.first { ![0x20, 0x09, 0x0a, 0x0d].contains($0) } == UInt8(ascii: "{")
    }

    /// The name of an item among all services, compared by bytes.
    private struct Name: Hashable {
        let service: TokenKey
        let key: TokenKey

        init(_ metadata: TokenMetadata) {
            service = TokenKey(metadata.service)
            key = metadata.key
        }
    }

    /// Returns `item`, if the item can be stored.
    private func checked(_ item: TokenItem, _ number: Int) throws(CommandFailure) -> TokenItem {
        do throws(TokenStorageError) {
            try Validation(operation: "import", backend: "vaultctl").check(item)
            return item
        } catch {
            var failure = CommandFailure(error)
            failure.happened = "line \(number): \(failure.happened)"
            throw failure.withNothingImported
        }
    }

    private func isBlank(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        range.allSatisfy { [0x20, 0x09, 0x0d].contains(bytes[$0]) }
    }

    private mutating func item(
        _ bytes: [UInt8], _ range: Range<Int>, _ number: Int
    ) throws(CommandFailure) -> TokenItem {
        let line: ItemLine
        do throws(ItemLine.Mistake) {
            line = try ItemLine(bytes, in: range, ignoresUnknown: ignoresUnknown)
        } catch {
            switch error {
            case .notAnItem:
                throw Self.mistake(
                    number,
                    "is not a JSON object with a key and texts, such as {\"key\": \"a\", \"value\": \"b\"}")
            case .notBase64: throw Self.mistake(number, "has a valueBase64 that is not Base64")
            case .unknownMember(let name):
                throw Self.mistake(
                    number,
                    "has the unknown field \"\(DisplayWidth.cut(name, to: 40))\"",
                    "remove it, or give --ignore-unknown")
            case .notOneValue: throw Self.mistake(number, "needs either value or valueBase64")
            }
        }
        unknownMembers += line.unknownMembers
        var policy = defaultPolicy
        if let name = line.policy {
            guard let named = AccessPolicy(rawValue: name) else {
                throw Self.mistake(
                    number,
                    "has an unknown policy: use one of "
                        + AccessPolicy.allCases.map(\.rawValue).joined(separator: ", "))
            }
            policy = named
        }
        let isFromLimitedSession = line.policyOrigin == JSONWriter.limitedSession
        guard line.policyOrigin == nil || isFromLimitedSession else {
            throw Self.mistake(
                number,
                "has an unknown policyOrigin: leave it out, or use \(JSONWriter.limitedSession)")
        }
        var expires: Date?
        if let text = line.expires {
            guard let date = Timestamp.date(text) else {
                throw Self.mistake(
                    number, "has an expiry that is not an RFC 3339 time, such as 2027-01-31T12:00:00Z")
            }
            expires = date
        }
        let label = line.label.flatMap { $0.isEmpty ? nil : $0 }
        return TokenItem(
            metadata: TokenMetadata(
                key: TokenKey(line.key), service: line.service ?? service, policy: policy, label: label,
                attributes: line.attributes, created: now, modified: now, expires: expires,
                generation: Generation(rawValue: 0), isPolicyFromLimitedSession: isFromLimitedSession),
            secret: line.secret)
    }

    private static func mistake(
        _ number: Int, _ what: String,
        _ advice: String = "write each line like the output of \"vaultctl retrieve --json\""
    ) -> CommandFailure {
        CommandFailure(.usage, "line \(number) \(what)", "nothing was imported; \(advice)")
    }
}

extension CommandFailure {
    /// The same failure, with the note that nothing was imported.
    var withNothingImported: CommandFailure {
        var failure = self
        failure.advice = "nothing was imported; \(advice)"
        return failure
    }
}
