/// What came of salvaging a damaged vault.
public struct SalvageReport: Sendable {
    /// A place where something was lost.
    public struct Loss: Sendable, Hashable {
        /// Where it begins in the damaged file, in bytes.
        public var offset: Int
        /// How many bytes nothing could be made of; 0 where what was there is missing without a trace.
        public var length: Int
        /// What was lost, in words for a person.
        public var description: String
    }

    /// Items that were saved.
    public var items: Int
    /// How many of these may not be what they were: a newer value, or their deletion, may be among what was lost.
    public var mayBeOlder: Int
    /// Items of which a trace was found and no value.
    public var itemsLost: Int
    /// Bytes nothing could be made of.
    public var bytesSkipped: Int
    /// What was lost, in the order of offsets.
    public var losses: [Loss]
    /// What is not lost but worth knowing.
    public var notes: [String]
    /// Whether this device has seen the vault, or what opens it, go further than the file.
    public var isOlderThanSeen = false

    /// Whether nothing was lost, and nothing is older than what this device has seen.
    public var isComplete: Bool { losses.isEmpty && !isOlderThanSeen }
}
