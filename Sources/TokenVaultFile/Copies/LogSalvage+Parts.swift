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
        /// The number of the run of frames that this one is in.
        var run = 0
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
        /// The run of frames behind a break of the chain; `nil` for another loss.
        var next: Int?
    }

    /// The runs of linked frames that are known to be this file's. Where the chain is broken, a run may have been taken
    /// from another file of the vault.
    struct KnownRuns {
        /// Whether no break is a loss.
        var areAllKnown = true
        /// Whether the first run begins with the first frame of the file that this device has seen.
        var isFirstKnown = false
        /// The run that has the last commit that this device has seen. Each frame names the one before it.
        var ofHead: Int?

        func contain(_ run: Int) -> Bool {
            areAllKnown || run == ofHead || run == 0 && isFirstKnown
        }
    }

    /// A place of missing frames that a crash may explain, as long as nothing behind it contradicts that.
    struct Suspect {
        var offset: Int
        /// The number of records of the group in front of the commit that has the place.
        var cut: Int
        var losses: [Loss]
    }
}
