#if canImport(FoundationEssentials)
package import FoundationEssentials
#endif

/// The meaning of a commit, the same in every backend: pure functions from the current state to the next.
///
/// A backend validates (``Validation``) and checks under its lock whether it may touch each item (`locked`,
/// `wrongDevice`). It then calls ``check(_:current:isTargetTaken:operation:backend:)``, and writes the result
/// of ``metadata(after:current:service:keepsPolicy:defaultPolicy:now:generation:)``.
package enum CommitRules {
    /// Returns the name of a list of changes for errors: that of a single change, else `commit`.
    package static func operation(_ changes: [TokenChange]) -> String {
        guard changes.count == 1, let change = changes.first else { return "commit" }
        return switch change.action {
        case .store: "store"
        case .update: "update"
        case .delete: "delete"
        case .rename: "rename"
        }
    }

    /// Checks `change` against the current item. Throws `conflict` with the current generation, `notFound` or
    /// `alreadyExists`.
    package static func check(
        _ change: TokenChange, current: Generation?, isTargetTaken: Bool, operation: String,
        backend: String
    ) throws(TokenStorageError) {
        let holds =
            switch change.expectation {
            case .any: true
            case .absent: current == nil
            case .generation(let expected): current == expected
            }
        guard holds else {
            throw TokenStorageError(
                .conflict, operation: operation, backend: backend, generation: current)
        }
        switch change.action {
        case .store, .delete: break
        case .update, .rename:
            guard current != nil else {
                throw TokenStorageError(.notFound, operation: operation, backend: backend)
            }
        }
        if isTargetTaken {
            throw TokenStorageError(.alreadyExists, operation: operation, backend: backend)
        }
    }

    /// Returns the policy of an item after `change`.
    package static func policy(
        after change: TokenChange, current: AccessPolicy?, defaultPolicy: AccessPolicy
    ) -> AccessPolicy {
        change.details.policy ?? current ?? defaultPolicy
    }

    /// Returns the metadata of an item after `change`, under its new key if renamed.
    ///
    /// Details that are not given keep their values, with two exceptions. The policy is kept only if
    /// `keepsPolicy` is true. A store drops an expiry in the past. A new item takes the defaults. For a
    /// delete, returns the metadata from before.
    package static func metadata(
        after change: TokenChange, current: TokenMetadata?, service: String, keepsPolicy: Bool = true,
        defaultPolicy: AccessPolicy, now: Date, generation: Generation
    ) -> TokenMetadata {
        let details = change.details
        var key = change.key
        if case .rename(let target) = change.action { key = target }
        let isStore = if case .store = change.action { true } else { false }
        let label = details.label ?? current?.label ?? ""
        let expires: Date? =
            switch details.expiry {
            // A past expiry belonged to the replaced secret.
            case .none: current?.expires.flatMap { isStore && $0 <= now ? nil : $0 }
            case .never: nil
            case .at(let date): date
            }
        return TokenMetadata(
            key: key, service: service,
            policy: policy(
                after: change, current: keepsPolicy ? current?.policy : nil, defaultPolicy: defaultPolicy),
            label: label.isEmpty ? nil : label,
            attributes: details.attributes ?? current?.attributes ?? [:],
            created: current?.created ?? now, modified: now, expires: expires,
            generation: generation)
    }
}
