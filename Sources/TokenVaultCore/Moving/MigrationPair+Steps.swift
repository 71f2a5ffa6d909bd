#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The calls that move an item. An error of the item leaves the item at the source; an error of the storage
/// ends the migration.
extension MigrationPair {
    enum Reading {
        case item(TokenItem)
        case absent
        case left(TokenStorageError.Code)
    }

    /// Reads the item at the source.
    func read(_ key: TokenKey) async throws(MigrationStop) -> Reading {
        do {
            return try await source.item(for: key).map { .item($0) } ?? .absent
        } catch {
            // One damaged item does not keep other items from being moved.
            let isAboutItem =
                error.code.isUnreadable
                || [.corrupt, .invalidKey, .unsupportedFormat].contains(error.code)
            guard isAboutItem else { throw MigrationStop(error, at: .source) }
            return .left(error.code)
        }
    }

    enum Look {
        case nothing
        /// The destination has the same item.
        case same(TokenMetadata)
        case other(Generation)
        /// The destination has an item that cannot be compared or replaced, such as one of another device.
        case unreadable
        /// The destination does not accept the key.
        case unusable(TokenStorageError.Code)
    }

    /// Compares the item at the destination with `copy`.
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
        /// The destination changed since it was examined.
        case moved
        case left(TokenStorageError.Code)
    }

    /// Stores `copy` if the destination meets `expectation`.
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

/// The intended item at the destination.
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

    /// All details, so that a replaced item keeps none of its own.
    var details: TokenDetails {
        TokenDetails(
            policy: policy, label: source.label ?? "", attributes: source.attributes,
            expiry: source.expires.map { .at($0) } ?? .never)
    }

    /// Returns whether `item` has this secret and these details. Backends keep times to the millisecond.
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
