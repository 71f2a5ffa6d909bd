internal import TokenVaultCore
internal import TokenVaultCrypto

extension MergedItems {
    /// Writes all items; `progress` gets the items done and the total.
    func write(
        to builder: inout LogBuilder, progress: ((Int, Int) -> Void)?
    ) throws(TokenStorageError) {
        var (ourScanner, theirScanner) = (ours.scanner(), theirs.scanner())
        var supplies = ItemSealer.Supplies(for: sources.count)
        for (position, source) in sources.enumerated() {
            if position.isMultiple(of: 1_024) { progress?(position, sources.count) }
            if source.isTheirs {
                try write(source, of: theirs, &theirScanner, to: &builder, &supplies)
            } else {
                try write(source, of: ours, &ourScanner, to: &builder, &supplies)
            }
        }
        progress?(sources.count, sources.count)
    }

    private func write(
        _ source: Source, of copy: CheckedCopy, _ scanner: inout LogScanner, to builder: inout LogBuilder,
        _ supplies: inout ItemSealer.Supplies
    ) throws(TokenStorageError) {
        guard source.isSealedAgain else {
            return try builder.copy(
                IndexRecord(source.item, source.entry, .newest), storedBy: source.storedBy, from: &scanner)
        }
        guard let opened = try copy.open(source.item, source.entry, &scanner),
            let (ring, keys) = sealing(source.entry)
        else { throw .damage(at: source.entry.offset, .item) }
        var metadata = opened.metadata
        if let key = source.key { metadata.key = key }
        let item = try ours.codec.item(service: metadata.service, key: metadata.key)
        var draft = try ItemSealer.item(
            item,
            metadata: ItemCoding.metadata(
                StoredMetadata(
                    metadata: metadata,
                    policyProof: metadata.isPolicyFromLimitedSession
                        ? nil : ring.policyProof(of: item, under: keys))),
            secret: opened.secret, keys: keys, serviceTag: source.entry.serviceTag, generation: generation,
            with: &supplies)
        draft.storedBy = source.storedBy
        try builder.append(draft, generation: generation)
    }
}
