internal import TokenVaultPlatform

extension VaultSession {
    /// What the file still has of an item, newest first: the value that it has now, and those that were replaced. Empty when the
    /// item is not there. What cannot be opened is counted as hidden; of an item whose present value cannot be, nothing else
    /// is told.
    func history(of item: ItemIdentifier) throws(TokenStorageError) -> TokenListing {
        while true {
            let replacements = ring.replacements
            do throws(TokenStorageError) {
                return try listing(ofValues: item)
            } catch {
                guard error.code == .locked else { throw error }
                guard ring.replacements != replacements else { throw ring.lockedError }
            }
        }
    }

    private func listing(ofValues item: ItemIdentifier) throws(TokenStorageError) -> TokenListing {
        let (values, file) = try log.values(of: item)
        try refreshKeys()
        var listing = TokenListing(items: [])
        for entry in values {
            if listing.hidden > 0, listing.items.isEmpty { break }
            switch ring.access(policy: entry.policy, setTag: entry.setTag, version: entry.keyVersion) {
            case .destroyed: continue
            case .locked: listing.hide(.locked)
            case .wrongDevice: listing.hide(.wrongDevice)
            case .notPermitted: listing.hide(.notPermitted)
            case .closed: throw .file(.closed)
            // The keys of before a revocation are gone.
            case .unsupported: listing.hide(.unsupportedFormat)
            case .keys(let keys):
                let bytes = try log.read(entry.metadataRange, from: file)
                let stored = try sealer.openMetadata(
                    bytes, in: 0..<bytes.count, of: item, generation: entry.generation, keys: keys)
                // One that does not open was erased meanwhile, or is damaged, which `verify` tells.
                guard let stored else { continue }
                listing.items.append(ring.metadata(stored, of: item, under: keys))
            }
        }
        return listing
    }

    /// The value of an item that was stored as `generation`, with what was known of it; `nil` when the file does not have it.
    func item(
        _ item: ItemIdentifier, storedAs generation: Generation
    ) throws(TokenStorageError) -> TokenItem? {
        let (values, file) = try log.values(of: item)
        try refreshKeys()
        guard let entry = values.first(where: { $0.generation == generation.rawValue }),
            let keys = try keys(toRead: entry)
        else { return nil }
        let bytes = try log.read(entry.contentRange, from: file)
        let split = Int(entry.metadataLength)
        guard bytes.count == entry.contentLength,
            let stored = try sealer.openMetadata(
                bytes, in: 0..<split, of: item, generation: entry.generation, keys: keys),
            let secret = try sealer.openBody(
                bytes, in: split..<bytes.count, of: item, generation: entry.generation, keys: keys)
        else {
            // Erased when the item was deleted meanwhile.
            let isStillThere = try log.values(of: item).0.contains { $0.generation == entry.generation }
            if isStillThere { throw .damage(at: entry.offset, "a damaged value") }
            return nil
        }
        return TokenItem(metadata: ring.metadata(stored, of: item, under: keys), secret: secret)
    }
}
