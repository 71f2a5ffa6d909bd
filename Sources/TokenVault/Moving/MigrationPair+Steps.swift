#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The calls that move an item, with their errors sorted: what is about the item leaves it where it is,
/// what is about the storage ends the migration.
extension MigrationPair {
    enum Reading {
        case item(TokenItem)
        case absent
        case left(TokenStorageError.Code)
    }

    /// The item at the source.
    func read(_ key: TokenKey) async throws(MigrationStop) -> Reading {
        do {
            return try await source.item(for: key).map { .item($0) } ?? .absent
        } catch {
            // One damaged item keeps no other from being moved.
            let isAboutItem =
                error.code.isUnreadable
                || [.corrupt, .invalidKey, .unsupportedFormat].contains(error.code)
            guard isAboutItem else { throw MigrationStop(error, at: .source) }
            return .left(error.code)
        }
    }

    enum Look {
        case nothing
        /// What was to be there is there.
        case same(TokenMetadata)
        case other(Generation)
        /// Something is there that cannot be compared or replaced: another device's.
        case unreadable
        /// The destination cannot have such a key.
        case unusable(TokenStorageError.Code)
    }

    /// What the destination has in place of `copy`.
    func look(for copy: MigrationCopy) async throws(MigrationStop) -> Look {
        do {
            guard let item = try await destination.item(for: copy.key) else { return .nothing }
            return copy.isSame(as: item) ? .same(item.metadata) : .other(item.metadata.generation)
        } catch {
            switch error.code {
            case .wrongDevice, .notPermitted, .corrupt, .unsupportedFormat: return .unreadable
            case .invalidKey, .invalidArgument: return .unusable(error.code)
            default: throw MigrationStop(error, at: .destination)
            }
        }
    }

    enum Storing {
        case stored(Generation)
        /// The destination changed since it was looked at.
        case moved
        case left(TokenStorageError.Code)
    }

    /// Stores `copy` if what is at the destination is as expected.
    func store(
        _ copy: MigrationCopy, _ expectation: TokenChange.Expectation
    ) async throws(MigrationStop) -> Storing {
        let change = TokenChange.store(
            copy.secret, for: copy.key, details: copy.details, expecting: expectation)
        do {
            return .stored(try await destination.commit([change]).made("migrate"))
        } catch {
            switch error.code {
            case .conflict: return .moved
            case .unsupportedPolicy, .tooLarge, .invalidKey, .invalidArgument, .notPermitted:
                return .left(error.code)
            default: throw MigrationStop(error, at: .destination)
            }
        }
    }
}

/// What an item is to be at the destination.
struct MigrationCopy {
    let key: TokenKey
    let secret: Secret
    let policy: AccessPolicy
    private let source: TokenMetadata

    init(of item: TokenItem, policy: AccessPolicy) {
        key = item.metadata.key
        secret = item.secret
        source = item.metadata
        self.policy = policy
    }

    /// All of them given, so that a replaced item keeps none of its own.
    var details: TokenDetails {
        TokenDetails(
            policy: policy, label: source.label ?? "", attributes: source.attributes,
            expiry: source.expires.map { .at($0) } ?? .never)
    }

    /// Whether `item` has this secret and these details. Backends keep times to the millisecond.
    func isSame(as item: TokenItem) -> Bool {
        let metadata = item.metadata
        let isSameExpiry =
            switch (metadata.expires, source.expires) {
            case (nil, nil): true
            case (let left?, let right?): abs(left.timeIntervalSince(right)) <= 0.001
            default: false
            }
        return item.secret == secret && metadata.policy == policy && isSameExpiry
            && Bytes.areEqual(metadata.label ?? "", source.label ?? "")
            && metadata.attributes == source.attributes
    }
}
