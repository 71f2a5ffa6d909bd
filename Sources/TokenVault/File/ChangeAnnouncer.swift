internal import TokenVaultPlatform

/// Turns frames that come to light into events for those who watch.
struct ChangeAnnouncer: Sendable {
    let ring: KeyRing
    let sealer: ItemSealer
    let hub: ChangeHub

    /// Tells the watchers of the item's service. An item whose names are dark tells nothing.
    func announce(_ frame: ScannedFrame, in file: any DiskFile) {
        guard hub.isObserved, frame.header.isItem else { return }
        let header = frame.header
        guard
            case .keys(let keys) = ring.access(
                policy: header.policy, setTag: header.setTag, version: header.keyVersion),
            let bytes = try? file.read(header.metadataLength, at: frame.offset + Frame.contentOffset)
        else { return }
        let isDeletion = header.type == RecordType.deletion.rawValue
        let opened = try? sealer.openMetadata(
            bytes, in: 0..<bytes.count, of: header.item, generation: header.generation, keys: keys,
            isDeletion: isDeletion)
        guard let metadata = opened else { return }
        let generation = Generation(rawValue: header.generation)
        hub.publish(
            service: metadata.service,
            isDeletion ? .deleted(metadata.key, generation) : .stored(metadata.key, generation))
    }
}
