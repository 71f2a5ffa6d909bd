internal import TokenVaultCore
internal import TokenVaultPlatform

extension VaultSession {
    /// Returns the values of an item that the file still has, newest first: the present value, and the
    /// replaced ones. Empty when the item is absent. Values that cannot be opened are counted as hidden. When
    /// the present value is one of them, no other value is listed or counted.
    func history(of item: ItemIdentifier) throws(TokenStorageError) -> TokenListing {
        try whileKeysAreReplaced { () throws(TokenStorageError) in
            var limit = RetryLimit(log.lockTimeout)
            while true {
                if let listing = try listing(ofValues: item) { return listing }
                try limit.require()
            }
        }
    }

    /// Returns the values; `nil` when the item was sealed under newer keys meanwhile.
    private func listing(ofValues item: ItemIdentifier) throws(TokenStorageError) -> TokenListing? {
        let (values, file) = try log.values(of: item)
        var listing = TokenListing(items: [])
        for (position, entry) in values.enumerated() {
            let access = ring.access(of: entry)
            if position == 0, case .unsupported = access,
                try isOvertaken(.unsupportedFormat, item, entry, since: 0)
            {
                return nil
            }
            if let keys = try listing.keys(of: access) {
                if let metadata = try metadata(of: item, at: entry, from: file, keys) {
                    listing.items.append(metadata)
                } else if position == 0, try log.entry(for: item)?.0.generation == entry.generation {
                    throw .damage(at: entry.offset, .item)
                } else if try log.values(of: item).0.contains(entry) {
                    // No deletion of the item erased the value meanwhile, so the value is damaged.
                    listing.hide(.corrupt)
                }
            } else if position == 0, listing.hidden > 0 {
                return listing
            }
        }
        return listing
    }

    /// Returns the value of an item that was stored as `generation`, with its metadata; `nil` when the file
    /// does not have it.
    func item(
        _ item: ItemIdentifier, storedAs generation: Generation
    ) throws(TokenStorageError) -> TokenItem? {
        let (values, file) = try log.values(of: item)
        guard let entry = values.first(where: { $0.generation == generation.rawValue }),
            let keys = try keys(toRead: entry)
        else { return nil }
        let opened = try self.item(item, in: try log.read(entry.contentRange, from: file), of: entry, keys)
        if let opened { return opened }
        // The value was erased when the item was deleted meanwhile.
        let isStillThere = try log.values(of: item).0.contains { $0.generation == entry.generation }
        if isStillThere { throw .damage(at: entry.offset, .value) }
        return nil
    }
}
