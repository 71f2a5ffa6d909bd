#if canImport(FoundationEssentials)
package import FoundationEssentials
#endif

/// What a commit means, the same in every backend: pure functions from what is there to what will be.
///
/// A backend validates (``Validation``), looks under its lock whether it may touch each item (`locked`,
/// `wrongDevice`), asks ``check(_:current:isTargetTaken:operation:backend:)``, and writes what
/// ``metadata(after:current:service:keepsPolicy:defaultPolicy:now:generation:)`` gives.
package enum CommitRules {
    /// How errors name a list of changes: the one change, or `commit`.
    package static func operation(_ changes: [TokenChange]) -> String {
        guard changes.count == 1, let change = changes.first else { return "commit" }
        return switch change.action {
        case .store: "store"
        case .update: "update"
        case .delete: "delete"
        case .rename: "rename"
        }
    }

    /// Whether `change` may be made of what is there now: `conflict` with the generation that is there,
    /// `notFound`, `alreadyExists`.
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

    /// The policy an item has after `change`.
    package static func policy(
        after change: TokenChange, current: AccessPolicy?, defaultPolicy: AccessPolicy
    ) -> AccessPolicy {
        change.details.policy ?? current ?? defaultPolicy
    }

    /// What is known of an item after `change`, under its new key if it was renamed. Details that are not given are kept:
    /// the policy only where `keepsPolicy` says so, an expiry in the past not by a store. A new item takes the defaults.
    /// For a delete, what was there.
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
            // What expired belonged to the secret that is replaced.
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
