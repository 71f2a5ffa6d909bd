internal import TokenVaultCore

/// The commits that a log descends from, so that a device can tell whether a file has all that the device has
/// seen.
///
/// Compaction, restoring, merging and programs that synchronise folders replace a file as a whole. Counters
/// cannot tell a newer file from one that another device wrote meanwhile: only the history can. The oldest
/// commit comes first.
struct Ancestry: Equatable, Sendable {
    /// A commit: its sequence, and a tag that tells it from every other commit of that sequence.
    struct Commit: Hashable, Sendable {
        var sequence: UInt64
        /// The first eight bytes of the chain value behind the commit: a keyed hash of all before it.
        var tag: UInt64

        init(sequence: UInt64, head: Digest) { self.init(sequence: sequence, tag: head.tag) }

        init(sequence: UInt64, tag: UInt64) {
            self.sequence = sequence
            self.tag = tag
        }

        fileprivate init(_ reader: inout ByteReader) throws(FormatError) {
            sequence = try reader.integer(UInt64.self)
            tag = try reader.integer(UInt64.self)
        }

        fileprivate func append(to writer: inout ByteWriter) {
            writer.append(sequence)
            writer.append(tag)
        }
    }

    /// A value that a merge left in its copy, because it had no keys for it.
    struct LeftValue: Hashable, Sendable {
        var item: ItemIdentifier
        /// The tag of the commit that stored it; zero where no list has that commit any more.
        var storedBy: UInt64
    }

    /// The number of newest commits that are kept.
    static let bound = 8_192
    /// The largest number of values that merges left in their copies.
    static let mostLeftValues = 1_024

    private(set) var commits: [Commit] = []
    /// Whether older commits were left out, for there were more than ``bound``.
    private(set) var isCut = false
    /// The commits of copies that merges took without the values in ``left``. A merge counts them as seen; a
    /// device that has one of them as its newest may miss something.
    private(set) var commitsInPart: [Commit] = []
    /// The values that merges left in their copies.
    private(set) var left: Set<LeftValue> = []

    init() {}

    var isEmpty: Bool { commits.isEmpty && !isCut }

    /// The commits of both lists.
    var allCommits: [Commit] { commits + commitsInPart }

    /// Adds the next commit.
    mutating func append(_ commit: Commit) {
        commits.append(commit)
        // The list grows by half before the oldest commits go, so that each one costs little.
        if commits.count > Self.bound + Self.bound / 2 { cut() }
    }

    /// Adds the history that follows.
    mutating func append(_ later: Ancestry) {
        commits += later.commits
        isCut = isCut || later.isCut
        cut()
    }

    /// Adds the commits of a history beside this one that it lacks, as the newest. When there are too many,
    /// at least half of those that stay are this history's: the devices of both know their newest commits.
    mutating func merge(_ other: Ancestry) {
        let known = Set(commits)
        let added = other.commits.filter { !known.contains($0) }
        isCut = isCut || other.isCut || commits.count + added.count > Self.bound
        commits = Array(commits.suffix(max(Self.bound / 2, Self.bound - added.count)))
        commits += added.suffix(Self.bound - commits.count)
    }

    /// Adds the history of a copy that was merged. `leftNow` has the values that this merge left in the copy, and
    /// `left` also those that earlier ones left in theirs. With more than ``mostLeftValues`` nothing in part is
    /// noted: a later merge takes what it took before, and loses nothing.
    mutating func merge(_ other: Ancestry, left: Set<LeftValue>, leftNow: Set<LeftValue>) {
        let whole = other.commitsWithout(leftNow)
        var beginning = other
        beginning.commits = Array(other.commits.prefix(whole))
        if whole > 0 { merge(beginning) }
        guard left.count <= Self.mostLeftValues else {
            commitsInPart = []
            self.left = []
            return
        }
        self.left = left
        let known = Set(commits)
        var added = Set<Commit>()
        let inPart = (commitsInPart + other.commitsInPart + other.commits.dropFirst(whole))
            .filter { !known.contains($0) && added.insert($0).inserted }
        guard left.isEmpty else {
            commitsInPart = inPart.suffix(Self.bound)
            return
        }
        // Nothing is missing any more. The newest commits of both files keep their places.
        commitsInPart = []
        let room = max(0, Self.bound - commits.count)
        isCut = isCut || inPart.count > room
        commits += inPart.suffix(room)
    }

    /// Returns whether a later merge finds that these values were left in a copy. That takes a note, unless no commit
    /// that stored one counts as seen.
    func knowsAsLeft(_ values: Set<LeftValue>) -> Bool {
        if values.isSubset(of: left) { return true }
        let tags = Set(commits.map(\.tag))
        return values.allSatisfy { $0.storedBy != 0 && !tags.contains($0.storedBy) }
    }

    /// Returns the number of oldest commits that have none of these values in their past.
    private func commitsWithout(_ values: Set<LeftValue>) -> Int {
        let tags = Set(values.map(\.storedBy))
        let places = commits.indices.filter { tags.contains(commits[$0].tag) }
        // A value without a listed commit may come from any commit.
        return Set(places.map { commits[$0].tag }) == tags ? places.first ?? commits.count : 0
    }

    private mutating func cut() {
        guard commits.count > Self.bound else { return }
        commits.removeFirst(commits.count - Self.bound)
        isCut = true
    }

    func contains(_ commit: Commit) -> Bool { commits.last { $0 == commit } != nil }

    /// Returns whether `commit` is so old that it may have been left out.
    func mayHaveLeftOut(_ commit: Commit) -> Bool {
        isCut && commit.sequence <= commits.first?.sequence ?? .max
    }

    /// Returns the newest commit that `other` has too; `nil` where the two have none in common.
    func newestCommon(with other: Ancestry) -> Commit? {
        let theirs = Set(other.commits)
        if let common = commits.last(where: theirs.contains) { return common }
        let inPart = Set(other.allCommits)
        return allCommits.last(where: inPart.contains)
    }

    func encoded() -> [UInt8] {
        var kept = self
        kept.cut()
        var flags: Flags = []
        if kept.isCut { flags.insert(.isCut) }
        if !left.isEmpty { flags.insert(.isInPart) }
        var writer = ByteWriter(
            reserving: 16 + 16 * (kept.commits.count + commitsInPart.count) + 24 * left.count)
        writer.append(UInt32(kept.commits.count))
        writer.append(flags.rawValue)
        for commit in kept.commits { commit.append(to: &writer) }
        guard flags.contains(.isInPart) else { return writer.bytes }
        writer.append(UInt32(commitsInPart.count))
        writer.append(UInt32(left.count))
        for commit in commitsInPart { commit.append(to: &writer) }
        for value in left.sorted() {
            value.item.append(to: &writer)
            writer.append(value.storedBy)
        }
        return writer.bytes
    }

    init(decoding bytes: [UInt8]) throws(FormatError) {
        var reader = ByteReader(bytes)
        let count = Int(try reader.integer(UInt32.self))
        let flags = Flags(rawValue: try reader.integer(UInt32.self))
        guard count <= Self.bound, flags.isSubset(of: .all), reader.remaining >= 16 * count else {
            throw .outOfBounds
        }
        isCut = flags.contains(.isCut)
        commits.reserveCapacity(count)
        for _ in 0..<count { commits.append(try Commit(&reader)) }
        if flags.contains(.isInPart) {
            let inPart = Int(try reader.integer(UInt32.self))
            let values = Int(try reader.integer(UInt32.self))
            guard inPart <= Self.bound, (1...Self.mostLeftValues).contains(values) else { throw .outOfBounds }
            for _ in 0..<inPart { commitsInPart.append(try Commit(&reader)) }
            for _ in 0..<values { left.insert(try LeftValue(&reader)) }
        }
        guard reader.remaining == 0 else { throw .outOfBounds }
    }

    private struct Flags: OptionSet {
        var rawValue: UInt32

        static let isCut = Flags(rawValue: 1)
        static let isInPart = Flags(rawValue: 2)
        static let all: Flags = [.isCut, .isInPart]
    }
}

extension Ancestry.LeftValue: Comparable {
    fileprivate init(_ reader: inout ByteReader) throws(FormatError) {
        item = ItemIdentifier(
            high: try reader.integer(UInt64.self), low: try reader.integer(UInt64.self))
        storedBy = try reader.integer(UInt64.self)
    }

    static func < (one: Ancestry.LeftValue, other: Ancestry.LeftValue) -> Bool {
        (one.item.high, one.item.low, one.storedBy) < (other.item.high, other.item.low, other.storedBy)
    }
}
