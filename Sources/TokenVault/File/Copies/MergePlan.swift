/// The plan for merging two files of one vault into a third, item by item, from the newest commit that both
/// have.
///
/// An item that changed in one file only is taken from that file, a deletion too. An item that changed in
/// both files is kept twice. Where the two files cannot tell, an item is kept: a lost deletion can be made
/// again, a lost secret cannot.
struct MergePlan {
    /// The outcome for an item.
    enum Choice: Equatable {
        /// The item stays as this file has it.
        case ours(IndexEntry)
        /// The item is taken from the other file.
        case theirs(IndexEntry)
        /// Both files have changed the item.
        case both(ours: IndexEntry, theirs: IndexEntry)
        /// One of the files has deleted the item.
        case deleted
    }

    private let ours: Ancestry
    private let theirs: Ancestry
    /// The newest commit that both files have.
    let fork: Ancestry.Commit

    /// Returns `nil` where the two files have no commit in common.
    init?(ours: Ancestry, theirs: Ancestry) {
        guard let fork = ours.newestCommon(with: theirs) else { return nil }
        self.ours = ours
        self.theirs = theirs
        self.fork = fork
    }

    /// Whether this file has every commit of the other file.
    var hasAllOfTheirs: Bool { theirs.commits.last.map(ours.contains) ?? false }

    /// Returns the outcome for an item that this file has as `our`, and the other file as `their`; `nil`
    /// where it is absent. `isReadable` says whether this device opens the item, so that an earlier merge
    /// gave it its own generation.
    func choice(ours our: IndexEntry?, theirs their: IndexEntry?, isReadable: Bool) -> Choice {
        switch (our, their) {
        case (nil, nil): .deleted
        case (let our?, nil):
            isCommon(our.generation, of: ours, in: theirs, isReadable) ? .deleted : .ours(our)
        case (nil, let their?):
            isCommon(their.generation, of: theirs, in: ours, isReadable) ? .deleted : .theirs(their)
        case (let our?, let their?):
            switch (our.generation > fork.sequence, their.generation > fork.sequence) {
            case (true, true): .both(ours: our, theirs: their)
            case (false, true): .theirs(their)
            case (true, false), (false, false): .ours(our)
            }
        }
    }

    /// Returns whether the commit that stored an item is known to be in the past of both files.
    private func isCommon(
        _ generation: UInt64, of history: Ancestry, in other: Ancestry, _ isReadable: Bool
    ) -> Bool {
        guard generation <= fork.sequence else { return false }
        if isReadable { return true }
        // After an earlier merge two commits may have this number.
        return history.commits(numbered: generation).allSatisfy(other.contains)
    }
}
