#if canImport(FoundationEssentials)
package import FoundationEssentials
#endif

/// The limits of arguments. Every backend checks them in the same way, before anything else.
///
/// Errors name the operation and the backend that the validation was made for.
package struct Validation: Sendable {
    /// The operation: `store`, `list` …
    package let operation: String
    /// The backend.
    package let backend: String

    /// The most that the label, attributes and names of an item may take together: 64 KiB.
    package static let longestTexts = 64 << 10

    package init(operation: String, backend: String) {
        self.operation = operation
        self.backend = backend
    }

    /// Checks that a service is 0 to 1,024 bytes (`invalidArgument`).
    package func check(service: String) throws(TokenStorageError) {
        guard NameRules.fits(service) else {
            throw failure(.invalidArgument, .limit(.service))
        }
    }

    /// Checks that a key is 0 to 1,024 bytes (`invalidKey`).
    package func check(key: TokenKey) throws(TokenStorageError) {
        guard NameRules.fits(key.name) else { throw failure(.invalidKey) }
    }

    /// Checks that a query has a prefix of at most 1,024 bytes and attributes that an item can have
    /// (`invalidArgument`).
    package func check(query: TokenQuery) throws(TokenStorageError) {
        guard query.prefix.utf8.count <= TokenKey.maximumLength else {
            throw failure(.invalidArgument, .limit(.prefix))
        }
        try check(attributes: query.attributes)
    }

    /// Checks that a secret is at most 1 MiB (`tooLarge`).
    package func check(secret: Secret) throws(TokenStorageError) {
        guard secret.count <= Secret.maximumLength else { throw failure(.tooLarge) }
    }

    /// Checks the limits of details (`invalidArgument`, `tooLarge`).
    ///
    /// A label is at most 1,024 bytes without control characters. Attributes are within the limits of
    /// ``TokenAttributes``. An expiry is in the years 1 to 9999.
    package func check(details: TokenDetails) throws(TokenStorageError) {
        if let label = details.label {
            guard label.utf8.count <= Self.longestLabel, !NameRules.hasControlCharacters(label) else {
                throw failure(
                    .invalidArgument, .limit(.label))
            }
        }
        if let attributes = details.attributes { try check(attributes: attributes) }
        if case .at(let date) = details.expiry {
            guard Self.isWritable(date) else {
                throw failure(.invalidArgument, .limit(.expiry))
            }
        }
    }

    /// Checks every key, secret and detail of a commit, and that no key is touched twice. A rename touches
    /// both of its keys. Throws `invalidKey`, `invalidArgument`, `tooLarge`.
    package func check(changes: [TokenChange]) throws(TokenStorageError) {
        var isRenaming = false
        for change in changes {
            try check(key: change.key)
            if case .rename(let target) = change.action {
                try check(key: target)
                isRenaming = true
            }
            if case .store(let secret) = change.action { try check(secret: secret) }
            try check(details: change.details)
        }
        // A single key is touched once: most commits need no set.
        guard changes.count > 1 || isRenaming else { return }
        var touched: Set<TokenKey> = []
        for change in changes {
            var isFirst = touched.insert(change.key).inserted
            if case .rename(let target) = change.action, !touched.insert(target).inserted { isFirst = false }
            if !isFirst { throw failure(.invalidArgument, .limit(.keyTwice)) }
        }
    }

    /// Checks that the policies of `changes` are among `supported` (`unsupportedPolicy`). The reason names
    /// `defaultPolicy` as the alternative.
    package func check(
        policiesOf changes: [TokenChange], supported: Set<AccessPolicy>, defaultPolicy: AccessPolicy
    ) throws(TokenStorageError) {
        for change in changes {
            if case .delete = change.action { continue }
            guard let policy = change.details.policy, !supported.contains(policy) else { continue }
            throw failure(.unsupportedPolicy, .policyUnsupported(.policy(defaultPolicy)))
        }
    }

    private func check(attributes: TokenAttributes) throws(TokenStorageError) {
        guard attributes.count <= TokenAttributes.maximumCount else {
            throw failure(.invalidArgument, .limit(.attributeCount))
        }
        var total = 0
        for (name, value) in attributes {
            guard Self.isUsable(name, value) else {
                throw failure(
                    .invalidArgument,
                    .limit(.attribute))
            }
            total += name.utf8.count + value.utf8.count
        }
        guard total <= TokenAttributes.maximumLength else {
            throw failure(.tooLarge, .limit(.attributesLength))
        }
    }

    private func failure(_ code: TokenStorageError.Code, _ reason: TokenStorageError.Reason? = nil)
        -> TokenStorageError
    {
        TokenStorageError(code, operation: operation, backend: backend, reason: reason)
    }

    private static func isUsable(_ name: String, _ value: String) -> Bool {
        name.utf8.count <= TokenAttributes.longestText && value.utf8.count <= TokenAttributes.longestText
    }

    // MARK: - Values from other programs

    /// Returns whether RFC 3339 can represent `date`.
    package static func isWritable(_ date: Date) -> Bool {
        writableSeconds.contains(date.timeIntervalSince1970)
    }

    /// Returns `label` within the limits of callers: spaces in place of control characters, cut at the
    /// maximum length.
    package static func fitting(label: String) -> String {
        var fitting = String.UnicodeScalarView()
        var length = 0
        for scalar in label.unicodeScalars {
            length += UTF8.width(scalar)
            guard length <= longestLabel else { break }
            fitting.append(NameRules.isControlCharacter(scalar) ? " " : scalar)
        }
        return String(fitting)
    }

    /// Returns the `attributes` that are within the limits of callers, in their order.
    package static func fitting(attributes: TokenAttributes) -> TokenAttributes {
        var fitting = TokenAttributes()
        var total = 0
        for (name, value) in attributes where isUsable(name, value) {
            total += name.utf8.count + value.utf8.count
            guard fitting.count < TokenAttributes.maximumCount, total <= TokenAttributes.maximumLength else {
                break
            }
            fitting[name] = value
        }
        return fitting
    }

    private static let longestLabel = 1_024
    // Years 1 to 9999, which RFC 3339 can represent.
    private static let writableSeconds = -62_135_596_800.0..<253_402_300_800.0
}
