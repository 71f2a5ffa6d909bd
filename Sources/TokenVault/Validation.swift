#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The limits of what callers give, checked alike by every backend before anything else is looked at.
///
/// Every check throws in the name of the operation and the backend it was made for.
package struct Validation: Sendable {
    /// What is being done: `store`, `list` …
    package let operation: String
    /// Which backend is asked.
    package let backend: String

    package init(operation: String, backend: String) {
        self.operation = operation
        self.backend = backend
    }

    /// A service is 0 to 1,024 bytes (`invalidArgument`).
    package func check(service: String) throws(TokenStorageError) {
        guard NameRules.fits(service) else {
            throw failure(.invalidArgument, .limit(.service))
        }
    }

    /// A key is 0 to 1,024 bytes (`invalidKey`).
    package func check(key: TokenKey) throws(TokenStorageError) {
        guard NameRules.fits(key.name) else { throw failure(.invalidKey) }
    }

    /// A query asks for a prefix of at most 1,024 bytes and for attributes that an item can have
    /// (`invalidArgument`).
    package func check(query: TokenQuery) throws(TokenStorageError) {
        guard query.prefix.utf8.count <= TokenKey.maximumLength else {
            throw failure(.invalidArgument, .limit(.prefix))
        }
        try check(attributes: query.attributes)
    }

    /// A secret is at most 1 MiB (`tooLarge`).
    package func check(secret: Secret) throws(TokenStorageError) {
        guard secret.count <= Secret.maximumLength else { throw failure(.tooLarge) }
    }

    /// A label is at most 1,024 bytes without control characters, attributes are within the limits of
    /// ``TokenAttributes``, an expiry is in the years 1 to 9999 (`invalidArgument`, `tooLarge`).
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

    /// Every key, secret and detail of a commit is within its limits, and no key is touched twice; a
    /// rename touches both of its keys (`invalidKey`, `invalidArgument`, `tooLarge`).
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
        // One key alone is touched once: most commits need no set.
        guard changes.count > 1 || isRenaming else { return }
        var touched: Set<TokenKey> = []
        for change in changes {
            var isFirst = touched.insert(change.key).inserted
            if case .rename(let target) = change.action, !touched.insert(target).inserted { isFirst = false }
            if !isFirst { throw failure(.invalidArgument, .limit(.keyTwice)) }
        }
    }

    /// The policies that `changes` ask for are among `supported` (`unsupportedPolicy`); the reason names
    /// one that is, or how to get this one.
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

    // MARK: - What others wrote

    /// Whether RFC 3339 can write `date`.
    static func isWritable(_ date: Date) -> Bool { writableSeconds.contains(date.timeIntervalSince1970) }

    /// `label` as a caller could have given it: spaces for control characters, cut at the limit.
    static func fitting(label: String) -> String {
        var fitting = String.UnicodeScalarView()
        var length = 0
        for scalar in label.unicodeScalars {
            length += UTF8.width(scalar)
            guard length <= longestLabel else { break }
            fitting.append(NameRules.isControlCharacter(scalar) ? " " : scalar)
        }
        return String(fitting)
    }

    /// Those of `attributes` that a caller could have given, in their order and up to the limits.
    static func fitting(attributes: TokenAttributes) -> TokenAttributes {
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
    // Years 1 to 9999, which RFC 3339 can write.
    private static let writableSeconds = -62_135_596_800.0..<253_402_300_800.0
}
