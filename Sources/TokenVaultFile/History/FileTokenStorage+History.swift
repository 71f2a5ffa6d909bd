public import TokenVaultCore

// An item's earlier values. A replaced value stays in the file, sealed, until its item is deleted or the file
// is compacted.
extension FileTokenStorage.Blocking: BlockingItemHistory {
    /// Returns the values of `key` that the file still has, newest first: the present value, then the
    /// replaced ones. Secrets are left out. Returns an empty list when the item is absent or was deleted:
    /// deleting erases all of its values.
    ///
    /// A rename, `restore`, `merge` and `salvage` begin a new history. Compaction leaves as many replaced
    /// values as the vault keeps (``BlockingFileVault/keepReplacedValues(_:)``), none by default. Values that
    /// cannot be opened are counted in ``TokenListing/hidden``; a value stays under the policy that it was
    /// stored with. Throws `locked` before the first unlock, `invalidArgument`, `closed`, and the system's
    /// failures.
    public func history(of key: TokenKey) throws(TokenStorageError) -> TokenListing {
        try during("history") { () throws(TokenStorageError) in
            let session = try sessionForReading(key, "history")
            return try session.history(of: try session.log.codec.item(service: service, key: key))
        }
    }

    /// Stores an earlier value of `key` again, with its policy, label, attributes and expiry. That is the
    /// value that was stored as `generation`, or else the last one before the present value whose keys are
    /// not destroyed. A policy chosen by a session without the root key is not brought back: that of the
    /// present value stays. The replaced value joins the history, so that a second call takes the first one
    /// back.
    ///
    /// Throws `notFound` when the item, or that value of it, is not in the file, and `invalidArgument` when
    /// it is the present value. Throws `conflict` when the item was changed meanwhile, `unsupportedPolicy`,
    /// and the errors of storing and reading.
    @discardableResult
    public func undo(
        _ key: TokenKey, to generation: Generation? = nil
    ) throws(TokenStorageError) -> TokenCommit {
        try during("undo") { () throws(TokenStorageError) in
            try commit([try changeToUndo(key, to: generation)])
        }
    }

    /// Returns the change that ``undo(_:to:)`` makes.
    func changeToUndo(
        _ key: TokenKey, to generation: Generation?
    ) throws(TokenStorageError) -> TokenChange {
        let session = try sessionForReading(key, "undo")
        let item = try session.log.codec.item(service: service, key: key)
        let values = try session.log.values(of: item).0
        guard let present = values.first else { throw .file(.notFound) }
        if generation?.rawValue == present.generation {
            throw .file(.invalidArgument, .limit(.keptGeneration))
        }
        let before = values.dropFirst().first { !session.isDestroyed($0.policy, $0.setTag, $0.keyVersion) }
        guard let wanted = generation ?? before.map({ Generation(rawValue: $0.generation) }),
            let earlier = try session.item(item, storedAs: wanted)
        else {
            throw .file(.notFound, .missing(.earlierValue))
        }
        return .store(
            earlier.secret, for: key,
            details: TokenDetails(
                // The secret was never under another policy.
                policy: earlier.metadata.isPolicyFromLimitedSession ? nil : earlier.metadata.policy,
                label: earlier.metadata.label ?? "", attributes: earlier.metadata.attributes,
                expiry: earlier.metadata.expires.map { .at($0) } ?? .never),
            expecting: .generation(Generation(rawValue: present.generation)))
    }
}

extension FileTokenStorage {
    /// Returns the values of `key` that the file still has: see ``Blocking/history(of:)``.
    public func history(of key: TokenKey) async throws(TokenStorageError) -> TokenListing {
        try await run(StorageCall("history", .read)) { (blocking) throws(TokenStorageError) in
            try blocking.history(of: key)
        }
    }

    /// Stores an earlier value of `key` again: see ``Blocking/undo(_:to:)``.
    @discardableResult
    public func undo(
        _ key: TokenKey, to generation: Generation? = nil
    ) async throws(TokenStorageError) -> TokenCommit {
        let change = try await run(StorageCall("undo", .read)) { (blocking) throws(TokenStorageError) in
            try during("undo") { () throws(TokenStorageError) in
                try blocking.changeToUndo(key, to: generation)
            }
        }
        return try await commit([change])
    }
}
