extension LogSalvage {
    /// What a frame says of its item, or of none.
    struct Record {
        var item: ItemIdentifier?
        var entry: IndexEntry
        var isDeletion: Bool
        /// Whether its contents are those that its header tells of.
        var isWhole: Bool
        /// Whether the rest of it is as it was written as well.
        var isIntact: Bool
        var beginsCommit = false
        var isControl: Bool
        /// The commit that ends with the frame.
        var commit: Ancestry.Commit?

        init(_ frame: ScannedFrame, isWhole: Bool, isIntact: Bool) {
            item = frame.header.isItem ? frame.header.item : nil
            entry = IndexEntry(frame.header, at: frame.offset)
            isDeletion = frame.header.type == RecordType.deletion.rawValue
            self.isWhole = isWhole
            self.isIntact = isIntact
            let type = RecordType(rawValue: frame.header.type)
            isControl = type == .genesis || type == .keybag
            commit = frame.commit
        }
    }

    /// Something that was lost.
    struct Loss {
        var range: Range<Int>
        var what: String
        /// Whether items in front of it may have been replaced or deleted by what was lost.
        var isDoubtful: Bool
    }

    /// A place where frames are missing that a crash may explain, as long as nothing behind it speaks against that.
    struct Suspect {
        var offset: Int
        /// How many records of the group are in front of the commit that has the place.
        var cut: Int
        var losses: [Loss]
    }
}
