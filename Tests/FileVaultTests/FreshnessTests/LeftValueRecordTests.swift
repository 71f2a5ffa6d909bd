import Testing
import TokenVault

@testable import TokenVaultFile

/// The record of the values that merges left in their copies, and of the commits that therefore count in part.
@Suite struct LeftValueRecordTests {
    private func commits(_ numbers: Range<UInt64>, of device: UInt64) -> Ancestry {
        var ancestry = Ancestry()
        for number in numbers { ancestry.append(.init(sequence: number, tag: device << 32 | number)) }
        return ancestry
    }

    private func values(_ count: Int) -> Set<Ancestry.LeftValue> {
        Set(
            (0..<UInt64(count)).map {
                .init(item: ItemIdentifier(high: $0 / 3, low: $0 % 3), storedBy: $0 | 7 << 32)
            })
    }

    @Test(arguments: [0, 1, Ancestry.mostLeftValues]) func theRecordIsReadAsItWasWritten(count: Int) throws {
        var history = commits(1..<10, of: 1)
        history.merge(commits(5..<20, of: 2), left: values(count), leftNow: values(count))
        let bytes = history.encoded()
        #expect(try Ancestry(decoding: bytes) == history)
        #expect(history.left == values(count) && history.allCommits.count == 24)
        for length in stride(from: 0, to: bytes.count, by: 8) {
            #expect(throws: FormatError.self) { try Ancestry(decoding: Array(bytes[..<length])) }
        }
        #expect(throws: FormatError.self) { try Ancestry(decoding: bytes + [0]) }
    }

    /// The commits before the left value's have not had it: they count in full.
    @Test func commitsBeforeALeftValueCountInFull() throws {
        let copy = commits(1..<10, of: 2)
        let left = Ancestry.LeftValue(item: ItemIdentifier(high: 1, low: 2), storedBy: copy.commits[4].tag)
        var history = commits(1..<10, of: 1)
        history.merge(copy, left: [left], leftNow: [left])
        #expect(history.commits.suffix(4) == copy.commits.prefix(4))
        #expect(history.commitsInPart == Array(copy.commits.suffix(5)))
    }

    /// The commit of a left value is so old that no list of its own file has it any more. The two files have
    /// commits in common in part only.
    @Test func aLeftValueOfAnOldCommitIsNotDeleted() throws {
        let (item, ours) = (ItemIdentifier(high: 1, low: 2), commits(4..<10, of: 1))
        let left = Ancestry.LeftValue(item: item, storedBy: 77)
        var theirs = commits(1..<3, of: 2)
        theirs.merge(ours, left: [left], leftNow: [left])
        #expect(theirs.commitsInPart == ours.commits)
        let plan = try #require(MergePlan(ours: ours, theirs: theirs))
        func choice(_ item: ItemIdentifier) -> MergePlan.Choice {
            let entry = IndexEntry(
                offset: 0, metadataLength: 0, bodyLength: 0, generation: 3, serviceTag: 0, setTag: 0,
                valueTag: 0, keyVersion: 1, policy: 1)
            return plan.choice(item, ours: MergePlan.Version(entry: entry, storedBy: nil), theirs: nil)
        }
        guard case .ours = choice(item) else {
            Issue.record("the value is deleted")
            return
        }
        guard case .deleted = choice(ItemIdentifier(high: 3, low: 4)) else {
            Issue.record("an item that the other file deleted stays")
            return
        }
        #expect(MergePlan(ours: theirs, theirs: ours) != nil)
    }

    /// More left values than the record holds: nothing in part is noted. That is enough while their commits do not
    /// count as seen.
    @Test func tooManyLeftValuesAreNotNoted() throws {
        var history = commits(1..<10, of: 1)
        let left = values(Ancestry.mostLeftValues + 1)
        history.merge(commits(1..<10, of: 2), left: left, leftNow: left)
        #expect(history == commits(1..<10, of: 1))
        #expect(history.knowsAsLeft(left))
        for tag in [0, history.commits[3].tag] {
            let seen = Ancestry.LeftValue(item: ItemIdentifier(high: 1, low: 2), storedBy: tag)
            #expect(!history.knowsAsLeft(left.union([seen])))
        }
    }

    /// Commits that count in full later do not push out the newest of either file.
    @Test func promotedCommitsKeepTheirPlace() {
        var history = commits(1..<6_001, of: 1)
        history.merge(commits(1..<6_001, of: 2), left: values(1), leftNow: values(1))
        let newest = history.commits.last
        history.merge(commits(1..<5_001, of: 3), left: [], leftNow: [])
        #expect(history.commits.count == Ancestry.bound && history.isCut)
        #expect(newest.map(history.contains) == true)
    }

    /// The copy no longer lists all its commits. When none of them counts in full, this history stays whole.
    @Test func aCutCopyInPartCutsNothing() {
        var history = commits(1..<10, of: 1)
        let copy = commits(1..<13_000, of: 2)
        history.merge(copy, left: values(1), leftNow: values(1))
        #expect(copy.isCut && !history.isCut && history.commits == commits(1..<10, of: 1).commits)
    }

    /// Once nothing is left, the copies' commits count in full.
    @Test func whatNothingIsLeftOfCountsInFull() {
        var history = commits(1..<10, of: 1)
        let copy = commits(1..<10, of: 2)
        history.merge(copy, left: values(1), leftNow: values(1))
        #expect(copy.commits.allSatisfy { history.commitsInPart.contains($0) && !history.contains($0) })
        history.merge(commits(1..<3, of: 3), left: values(1), leftNow: [])
        #expect(commits(1..<3, of: 3).commits.allSatisfy(history.contains))
        #expect(copy.commits.allSatisfy(history.commitsInPart.contains))
        history.merge(copy, left: [], leftNow: [])
        #expect(copy.commits.allSatisfy(history.contains) && history.commitsInPart.isEmpty)
    }
}
