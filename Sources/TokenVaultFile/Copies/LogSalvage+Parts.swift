internal import TokenVaultCore

extension LogSalvage {
    /// The contents of a frame about its item, or about none.
    struct Record {
        var item: ItemIdentifier?
        var entry: IndexEntry
        var isDeletion: Bool
        /// Whether the contents match the header.
        var isWhole: Bool
        /// Whether the rest of the frame is intact as well.
        var isIntact: Bool
        var beginsCommit = false
        var isControl: Bool
        /// The keybag that the record names.
        var keybag: KeybagRecord?
        /// The commit that ends with the frame.
        var commit: Ancestry.Commit?

        init(_ frame: ScannedFrame, isWhole: Bool, isIntact: Bool) {
            item = frame.header.isItem ? frame.header.item : nil
            entry = IndexEntry(frame.header, at: frame.offset)
            isDeletion = frame.header.type == RecordType.deletion.rawValue
            self.isWhole = isWhole
            self.isIntact = isIntact
            let type = RecordType(rawValue: frame.header.type)
            isControl = type == .genesis || type == .keybag || type == .ancestry
            commit = frame.commit
        }
    }

    /// A part that was lost.
    struct Loss {
        var range: Range<Int>
        var what: String
        /// Whether the lost part may have replaced or deleted items in front of it.
        var isDoubtful: Bool
    }

    /// A place of missing frames that a crash may explain, as long as nothing behind it contradicts that.
    struct Suspect {
        var offset: Int
        /// The number of records of the group in front of the commit that has the place.
        var cut: Int
        var losses: [Loss]
    }
}
