internal import TokenVaultCrypto

/// Opens what an item's record holds, to see whether it does open.
struct ContentChecker: Sendable {
    private let ring: KeyRing
    private let sealer: ItemSealer

    init(ring: KeyRing) {
        self.ring = ring
        sealer = ItemSealer(vault: ring.vault)
    }

    /// Opens the contents of an item's record into `scratch`, if its keys are held.
    func check(
        _ bytes: [UInt8], in content: Range<Int>, of header: FrameHeader, _ scratch: Scratch
    ) throws(TokenStorageError) -> FrameInspection.Contents {
        // A deletion by someone who could not read the item carries no names.
        if content.isEmpty { return .whole }
        guard
            case .keys(let keys) = ring.access(
                policy: header.policy, setTag: header.setTag, version: header.keyVersion)
        else { return .notReadable }
        do {
            let isWhole = try sealer.isWhole(bytes, in: content, of: header, keys: keys, scratch)
            return isWhole ? .whole : .damaged
        } catch {
            if error.code == .locked { return .notReadable }
            throw error
        }
    }
}
