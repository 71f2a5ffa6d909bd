/// Opens what an item's record holds, to see whether it does open.
struct ContentChecker: Sendable {
    private let ring: KeyRing
    private let sealer: ItemSealer

    init(ring: KeyRing) {
        self.ring = ring
        sealer = ItemSealer(vault: ring.vault)
    }

    /// Opens the contents of an item's record, if its keys are held.
    func check(
        _ bytes: [UInt8], in content: Range<Int>, of header: FrameHeader
    ) throws(TokenStorageError) -> FrameInspection.Contents {
        // A deletion by someone who could not read the item carries no names.
        if content.isEmpty { return .whole }
        guard
            case .keys(let keys) = ring.access(
                policy: header.policy, setTag: header.setTag, version: header.keyVersion)
        else { return .notReadable }
        let isDeletion = header.type == RecordType.deletion.rawValue
        let split = content.lowerBound + header.metadataLength
        do {
            let metadata = try sealer.openMetadata(
                bytes, in: content.lowerBound..<split, of: header.item, generation: header.generation,
                keys: keys,
                isDeletion: isDeletion)
            guard metadata != nil else { return .damaged }
            if isDeletion { return .whole }
            let secret = try sealer.openBody(
                bytes, in: split..<content.upperBound, of: header.item, generation: header.generation,
                keys: keys)
            return secret == nil ? .damaged : .whole
        } catch {
            if error.code == .locked { return .notReadable }
            throw error
        }
    }
}
