/// What of two files of one vault goes into a third: decided item by item, from the newest commit that both have.
///
/// An item that changed on one side only is taken from there, a deletion too. What changed on both sides is kept twice. Where the
/// two files cannot tell, an item is kept: a deletion that is lost can be made again, a secret that is lost cannot.
struct MergePlan {
    /// What becomes of an item.
    enum Choice: Equatable {
        /// It stays as this file has it.
        case ours(IndexEntry)
        /// It is taken from the other file.
        case theirs(IndexEntry)
        /// Both files have changed it.
        case both(ours: IndexEntry, theirs: IndexEntry)
        /// One of the files has deleted it.
        case deleted
    }

    private let ours: Ancestry
    private let theirs: Ancestry
    /// The newest commit that both files have.
    let fork: Ancestry.Commit

    /// `nil` where the two files have no commit in common.
    init?(ours: Ancestry, theirs: Ancestry) {
        guard let fork = ours.newestCommon(with: theirs) else { return nil }
        self.ours = ours
        self.theirs = theirs
        self.fork = fork
    }

    /// Whether this file has every commit of the other one.
    var hasAllOfTheirs: Bool { theirs.commits.last.map(ours.contains) ?? false }

    /// What becomes of an item that this file has as `our`, and the other one as `their`; `nil` where it is not there.
    /// `isReadable` says whether this device opens it, so that an earlier merge gave it a generation of its own.
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

    /// Whether the commit that stored an item is known to be in the past of both files.
    private func isCommon(
        _ generation: UInt64, of history: Ancestry, in other: Ancestry, _ isReadable: Bool
    ) -> Bool {
        guard generation <= fork.sequence else { return false }
        if isReadable { return true }
        // After an earlier merge two commits may have this number.
        return history.commits(numbered: generation).allSatisfy(other.contains)
    }
}
