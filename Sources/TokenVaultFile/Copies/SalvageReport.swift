/// The result of salvaging a damaged vault.
public struct SalvageReport: Sendable {
    /// A place where data was lost.
    public struct Loss: Sendable, Hashable {
        /// The offset of the place in the damaged file, in bytes.
        public var offset: Int
        /// The number of unusable bytes; 0 where the lost data is missing without a trace.
        public var length: Int
        /// The description of the loss, in words for the user.
        public var description: String
    }

    /// The number of saved items.
    public var items: Int
    /// The number of saved items that may be out of date. A newer value, or their deletion, may be lost, or the value
    /// may be that of an earlier file.
    public var mayBeOlder: Int
    /// The number of items that a trace was found of, and no value that can be saved. Such a trace may be a deletion of
    /// another file, or a value under keys that the slots do not lead to.
    public var itemsLost: Int
    /// The number of unusable bytes.
    public var bytesSkipped: Int
    /// The losses, in the order of offsets.
    public var losses: [Loss]
    /// Notes that are no losses.
    public var notes: [String]
    /// Whether this device has seen the vault, or its keybag, go further than the file, or elsewhere.
    public var isOlderThanSeen = false

    /// Whether nothing was lost, and nothing is older than what this device has seen.
    public var isComplete: Bool { losses.isEmpty && !isOlderThanSeen }
}
