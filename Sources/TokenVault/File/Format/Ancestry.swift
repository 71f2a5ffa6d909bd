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
    }

    /// The number of newest commits that are kept.
    static let bound = 8_192

    private(set) var commits: [Commit] = []
    /// Whether older commits were left out, for there were more than ``bound``.
    private(set) var isCut = false

    init() {}

    var isEmpty: Bool { commits.isEmpty && !isCut }

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
        return commits.last { theirs.contains($0) }
    }

    func encoded() -> [UInt8] {
        var kept = self
        kept.cut()
        var writer = ByteWriter(reserving: 8 + 16 * kept.commits.count)
        writer.append(UInt32(kept.commits.count))
        writer.append(UInt32(kept.isCut ? 1 : 0))
        for commit in kept.commits {
            writer.append(commit.sequence)
            writer.append(commit.tag)
        }
        return writer.bytes
    }

    init(decoding bytes: [UInt8]) throws(FormatError) {
        var reader = ByteReader(bytes)
        let count = Int(try reader.integer(UInt32.self))
        let flag = try reader.integer(UInt32.self)
        guard count <= Self.bound, flag <= 1, reader.remaining == 16 * count else { throw .outOfBounds }
        isCut = flag == 1
        commits.reserveCapacity(count)
        for _ in 0..<count { commits.append(try Commit(&reader)) }
    }
}
