import TokenVault

#if canImport(FoundationEssentials)
import FoundationEssentials
import ProgramSupport
#endif

/// Parses `--policy`, `--label`, `--attribute` and `--expires`.
enum ItemDetails {
    /// The policies' names, as `--policy` accepts them.
    static let policyNames = AccessPolicy.allCases.map(\.rawValue)

    static func policy(_ text: String?) throws(CommandFailure) -> AccessPolicy? {
        try text.map { (text) throws(CommandFailure) in
            try Settings.choice(text, "there is no such policy")
        }
    }

    /// Parses `K=V` pairs. The value may be empty and may contain equals signs.
    static func attributes(_ pairs: [String]) throws(CommandFailure) -> TokenAttributes? {
        guard !pairs.isEmpty else { return nil }
        var attributes = TokenAttributes()
        for pair in pairs {
            guard let equals = pair.utf8.firstIndex(of: UInt8(ascii: "=")) else {
                throw .usage("an --attribute has no equals sign", "write it as NAME=VALUE")
            }
            attributes[String(pair[..<equals])] = String(pair[pair.utf8.index(after: equals)...])
        }
        return attributes
    }

    /// Parses `never`, a span from now (`90s`, `15m`, `1h`, `30d`, `2w`), or a time of RFC 3339.
    static func expiry(_ text: String?, now: Date) throws(CommandFailure) -> TokenDetails.Expiry? {
        guard let text else { return nil }
        if text == "never" { return .never }
        // The time is a whole second like printed times, so a printed time stored again stays the same.
        if let seconds = seconds(text) {
            return .at(Date(timeIntervalSince1970: (now.timeIntervalSince1970 + seconds).rounded(.up)))
        }
        if let date = Timestamp.date(text) { return .at(date) }
        throw .usage(
            "--expires is not a time", "use a span such as 15m, 1h or 30d, a time of RFC 3339, or never")
    }

    /// Parses a span such as `90s`, `15m`, `1h`, `30d` or `2w` into seconds.
    static func seconds(_ text: String) -> Double? {
        let units: [Character: Double] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800]
        guard let last = text.last, let unit = units[last], text.utf8.count <= 10,
            text.utf8.dropLast().allSatisfy({ (0x30...0x39).contains($0) }),
            let count = Double(text.dropLast())
        else { return nil }
        return count * unit
    }

    /// Returns the details, checked before anything is unlocked or asked.
    static func details(
        policy: String?, label: String?, attributes: [String], expires: String?
    ) throws(CommandFailure) -> TokenDetails {
        let details = TokenDetails(
            policy: try self.policy(policy), label: label, attributes: try self.attributes(attributes),
            expiry: try expiry(expires, now: Date()))
        try calling { () throws(TokenStorageError) in
            try Validation(operation: "details", backend: "vaultctl").check(details: details)
        }
        return details
    }

    /// Returns the query of `list`.
    static func query(prefix: String?, attributes: [String]) throws(CommandFailure) -> TokenQuery {
        let query = TokenQuery(
            prefix: prefix ?? "", attributes: try self.attributes(attributes) ?? TokenAttributes())
        try calling { () throws(TokenStorageError) in
            try Validation(operation: "list", backend: "vaultctl").check(query: query)
        }
        return query
    }
}
