internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

extension VaultSession {
    func secret(service: String, key: TokenKey) throws(TokenStorageError) -> Secret? {
        try read(try log.codec.item(service: service, key: key), part: { $0.bodyRange }) {
            (bytes, entry, item, keys) throws(TokenStorageError) in
            try ItemSealer.openBody(
                bytes, in: 0..<bytes.count, of: item, generation: entry.generation, valueTag: entry.valueTag,
                keys: keys)
        }
    }

    func metadata(service: String, key: TokenKey) throws(TokenStorageError) -> TokenMetadata? {
        try read(try log.codec.item(service: service, key: key), part: { $0.metadataRange }) {
            (bytes, entry, item, keys) throws(TokenStorageError) in
            try ItemSealer.openMetadata(
                bytes, in: 0..<bytes.count, of: item, generation: entry.generation, valueTag: entry.valueTag,
                keys: keys
            ).map { ring.metadata($0, of: item, under: keys) }
        }
    }

    func item(service: String, key: TokenKey) throws(TokenStorageError) -> TokenItem? {
        try item(try log.codec.item(service: service, key: key))
    }

    /// Returns the item whose name has this digest, of any service.
    func item(_ identifier: ItemIdentifier) throws(TokenStorageError) -> TokenItem? {
        try read(identifier, part: { $0.contentRange }) {
            (bytes, entry, item, keys) throws(TokenStorageError) in
            try self.item(item, in: bytes, of: entry, keys)
        }
    }

    /// Returns the item in the sealed contents of `entry`; `nil` when they do not open.
    func item(
        _ item: ItemIdentifier, in bytes: [UInt8], of entry: IndexEntry, _ keys: ClassKeys
    ) throws(TokenStorageError) -> TokenItem? {
        let split = Int(entry.metadataLength)
        guard bytes.count == entry.contentLength,
            let stored = try ItemSealer.openMetadata(
                bytes, in: 0..<split, of: item, generation: entry.generation, valueTag: entry.valueTag,
                keys: keys),
            let secret = try ItemSealer.openBody(
                bytes, in: split..<bytes.count, of: item, generation: entry.generation,
                valueTag: entry.valueTag, keys: keys)
        else { return nil }
        return TokenItem(metadata: ring.metadata(stored, of: item, under: keys), secret: secret)
    }

    /// Finds an item and opens a part of it. Bytes that do not open may have been erased or moved since
    /// the look-up: only the same place failing twice is damage.
    private func read<Value>(
        _ item: ItemIdentifier, part: (IndexEntry) -> Range<Int>,
        open: ([UInt8], IndexEntry, ItemIdentifier, ClassKeys) throws(TokenStorageError) -> Value?
    ) throws(TokenStorageError) -> Value? {
        var failed: IndexEntry?
        var limit = RetryLimit(log.lockTimeout)
        while true {
            guard let (entry, file) = try log.entry(for: item) else { return nil }
            let replacements = ring.replacements
            do throws(TokenStorageError) {
                guard let keys = try keys(toRead: entry) else { return nil }
                let bytes = try log.read(part(entry), from: file)
                if let value = try open(bytes, entry, item, keys) { return value }
            } catch {
                guard try isOvertaken(error.code, item, entry, since: replacements) else {
                    throw error.code == .locked ? ring.lockedError : error
                }
                try limit.require()
                continue
            }
            if let failed, failed.offset == entry.offset, failed.generation == entry.generation {
                throw .damage(at: entry.offset, .item)
            }
            failed = entry
            try log.reloadIfReplaced()
        }
    }

    /// Returns whether the keys of `entry` were replaced, or the item sealed under newer keys, after the
    /// look-up.
    func isOvertaken(
        _ code: TokenStorageError.Code, _ item: ItemIdentifier, _ entry: IndexEntry, since replacements: Int
    ) throws(TokenStorageError) -> Bool {
        switch code {
        case .locked: return ring.replacements != replacements
        case .unsupportedFormat:
            // Another process may have sealed the item under keys that this one takes over in a moment.
            if log.comingKeybag.withLock({ $0 != nil }) { return true }
            guard let (now, _) = try log.entry(for: item) else { return true }
            return now.keyVersion != entry.keyVersion
        default: return false
        }
    }

    /// Runs `body`, which changes nothing. Runs it again each time it meets keys that were wiped because
    /// other keys took their place. For keys wiped otherwise, the error says whether by a lock or for good.
    func whileKeysAreReplaced<Value>(
        _ body: () throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        while true {
            let replacements = ring.replacements
            do throws(TokenStorageError) {
                return try body()
            } catch {
                guard error.code == .locked else { throw error }
                guard ring.replacements != replacements else { throw ring.lockedError }
            }
        }
    }

    /// Returns the keys that open an item; `nil` when they were destroyed and the item with them.
    func keys(toRead entry: IndexEntry) throws(TokenStorageError) -> ClassKeys? {
        try keys(of: ring.access(of: entry))
    }

    /// Returns the keys; `nil` when they were destroyed. Throws the reason that they are not held.
    func keys(of access: KeyRing.Access) throws(TokenStorageError) -> ClassKeys? {
        do throws(TokenStorageError) {
            return try access.keys()
        } catch {
            if error.code == .locked { throw ring.lockedError }
            guard error.code == .wrongDevice, ring.facts.deviceTag == nil else { throw error }
            var error = error
            error.reason = .deviceKeyMissing(path: deviceKeyPath.map { "\($0)" })
            throw error
        }
    }

    /// Returns the items of a service, or of all, with the number that cannot be shown.
    func list(service: String?, query: TokenQuery) throws(TokenStorageError) -> TokenListing {
        var limit = RetryLimit(log.lockTimeout)
        while true {
            let replacements = ring.replacements
            do throws(TokenStorageError) {
                if let listing = try listing(service: service, query: query) { return listing }
            } catch {
                guard error.code == .locked else { throw error }
                guard ring.replacements != replacements else { throw ring.lockedError }
            }
            try limit.require()
        }
    }

    /// Returns the items; `nil` when they were sealed under newer keys meanwhile.
    private func listing(
        service: String?, query: TokenQuery
    ) throws(TokenStorageError) -> TokenListing? {
        let tag: UInt64? = if let service { try log.codec.tag(ofService: service) } else { nil }
        let (entries, file) = try log.entries()
        var listing = TokenListing(items: [])
        for (item, entry) in entries where tag == nil || entry.serviceTag == tag {
            let access = ring.access(of: entry)
            if case .unsupported = access, try isOvertaken(.unsupportedFormat, item, entry, since: 0) {
                return nil
            }
            guard let keys = try listing.keys(of: access) else { continue }
            guard let metadata = try metadata(of: item, at: entry, from: file, keys) else {
                // The item was deleted and erased since the list was taken, or is damaged: a single read
                // decides.
                if let (now, _) = try log.entry(for: item), now.generation == entry.generation {
                    throw .damage(at: entry.offset, .item)
                }
                continue
            }
            if query.matches(metadata) { listing.items.append(metadata) }
        }
        listing.items.sort { left, right in
            let services = (TokenKey(left.service), TokenKey(right.service))
            return services.0 == services.1 ? left.key < right.key : services.0 < services.1
        }
        return listing
    }
}

extension VaultSession {
    /// Returns the metadata at `entry`; `nil` when they do not open.
    func metadata(
        of item: ItemIdentifier, at entry: IndexEntry, from file: any DiskFile, _ keys: ClassKeys
    ) throws(TokenStorageError) -> TokenMetadata? {
        let bytes = try log.read(entry.metadataRange, from: file)
        return try ItemSealer.openMetadata(
            bytes, in: 0..<bytes.count, of: item, generation: entry.generation, valueTag: entry.valueTag,
            keys: keys
        ).map { ring.metadata($0, of: item, under: keys) }
    }
}

extension KeyRing {
    /// Returns the keys that `entry` is sealed under, or the reason that they are not held.
    func access(of entry: IndexEntry) -> Access {
        access(policy: entry.policy, setTag: entry.setTag, version: entry.keyVersion)
    }
}

extension IndexEntry {
    var contentRange: Range<Int> { contentStart..<contentStart + contentLength }
}

extension TokenListing {
    /// Returns the keys; `nil` for an item that cannot be opened. Such an item is counted unless its keys
    /// were destroyed. Throws `closed`.
    mutating func keys(of access: KeyRing.Access) throws(TokenStorageError) -> ClassKeys? {
        switch access {
        case .keys(let keys): return keys
        case .destroyed: break
        case .locked: hide(.locked)
        case .wrongDevice: hide(.wrongDevice)
        case .notPermitted: hide(.notPermitted)
        case .closed: throw .file(.closed)
        case .unsupported: hide(.unsupportedFormat)
        }
        return nil
    }

    mutating func hide(_ reason: TokenStorageError.Code) {
        hidden += 1
        hiddenReasons[reason, default: 0] += 1
    }
}

extension KeyRing.Access {
    /// Returns the keys; `nil` when they were destroyed. Throws the reason that they are not held.
    func keys() throws(TokenStorageError) -> ClassKeys? {
        switch self {
        case .keys(let keys): return keys
        case .destroyed: return nil
        case .locked: throw .file(.locked)
        case .closed: throw .file(.closed)
        case .wrongDevice: throw .file(.wrongDevice)
        case .notPermitted:
            throw .file(.notPermitted, .permission(.item))
        case .unsupported: throw .file(.unsupportedFormat, .newerFormat(.keyClass))
        }
    }
}

/// The time in which a session tries again while others replace keys. An index that contradicts itself looks the same.
struct RetryLimit {
    private let timeout: LockTimeout
    private var deadline: Deadline?

    init(_ timeout: LockTimeout) { self.timeout = timeout }

    /// Throws `timedOut` from the second time on when the time has passed since the first.
    mutating func require() throws(TokenStorageError) {
        guard let deadline else { return deadline = Deadline(after: timeout) }
        if deadline.hasPassed { throw .file(.timedOut, .deadline(.keybagChanges)) }
    }
}
