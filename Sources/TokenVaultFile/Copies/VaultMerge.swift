internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Merges a copy into the file in the vault's place: a new file with the items of both, in a new epoch of the
/// log.
struct VaultMerge {
    let ours: VaultCopy
    let theirs: VaultCopy
    let place: VaultLocation
    let isRehearsal: Bool
    let progress: ((Int, Int) -> Void)?

    func run() throws(TokenStorageError) -> MergeReport {
        guard ours.vault == theirs.vault else {
            throw .file(.unexpectedVault, .copyOfAnotherVault(path: theirs.path.string))
        }
        if !isRehearsal, ours.configuration.isReadOnly { throw ReadOnlyReason.requested.error }
        try place.requireTrustedDirectory()
        let deadline = Deadline(after: ours.configuration.lockLimit)
        while true {
            guard let existing = try ExistingFile(at: place) else {
                throw place.absence(.noVaultToMergeInto(path: place.path.string))
            }
            try WriterLock(file: existing.file).take(.exclusive, until: deadline)
            defer { existing.file.unlock() }
            guard try isStillThere(existing) else {
                if deadline.hasPassed { throw .file(.timedOut) }
                continue
            }
            return try merge(into: existing, until: deadline)
        }
    }

    private func isStillThere(_ existing: ExistingFile) throws(TokenStorageError) -> Bool {
        let place = place
        let there = try onDisk { () throws(SystemFailure) in
            try place.directory.attributes(of: place.name)
        }
        return there?.identity == existing.identity
    }

    /// Merges into `existing`, whose lock the caller holds.
    private func merge(
        into existing: ExistingFile, until deadline: Deadline
    ) throws(TokenStorageError) -> MergeReport {
        // A merge must not decide which file is the vault.
        try VaultPlaces.requireExpected(ours.vault, at: place, knownTo: place.state)
        if let other = try VaultPlaces.otherFile(of: ours.vault, than: place, existing) {
            throw .duplicate(other.path)
        }
        try HardLinks(location: place).requireNone(of: existing.file)
        let copied = theirs.file
        let identity = try onDisk { () throws(SystemFailure) in try copied.attributes().identity }
        guard identity != existing.identity else {
            throw .file(.invalidArgument, .limit(.mergedWithItself))
        }
        try theirs.lockForReading(copied, until: deadline)
        defer { copied.unlock() }
        try theirs.requireInPlace(identity)

        let our = try checkedVault(existing)
        defer { our.wipe() }
        let their = try CheckedCopy(theirs, file: copied, progress: progress)
        defer { their.wipe() }
        try requirePlausible(their, beside: our)
        var history = try our.history()
        let theirHistory = try their.history()
        guard let plan = MergePlan(ours: history, theirs: theirHistory) else {
            throw .file(.invalidArgument, .ancestry(.nothingInCommon))
        }
        let anchor = Anchor(directory: place.state, vault: ours.vault, key: our.codec.keys.anchor)
        anchor.use(our.succession, of: our.record)
        let anchored = try anchor.read()
        if plan.hasAllOfTheirs, history.left.isEmpty {
            try requireSuccession(our, our.state, from: anchored)
            try requireDescent(history, our.state, from: anchored)
            noteReading(our, of: existing, anchor, anchored)
            var report = MergeReport()
            report.items = our.items.count
            report.isUpToDate = true
            return report
        }
        var reach = HighWaterMark()
        for state in [our.state, their.state] { reach.include(state) }
        if let anchored { reach.include(anchored) }
        try reach.include(existing.file, our.codec)
        let life = try reach.next()

        let known = anchored?.roots(in: our.state.epoch) ?? RootNames()
        let items = try MergedItems(
            plan, ours: our, theirs: their, knownRoots: known, generation: life.sequence)
        let newest = items.hasKeysOfTheirs ? their : our
        try requireSuccession(newest, our.state, from: anchored)
        let before = history
        history.merge(theirHistory, left: items.left, leftNow: items.leftNow)
        guard history.knowsAsLeft(items.left) else { throw .file(.conflict, .ancestry(.tooManyLeft)) }
        // The new file has everything that this device has seen in the copy, or the report counts it as left.
        if !isAccepted(theirHistory, our.state, by: anchored) {
            try requireDescent(history, our.state, from: anchored)
        }
        if plan.hasAllOfTheirs, items.isSameAsOurs, history == before,
            isAccepted(before, our.state, by: anchored)
        {
            noteReading(our, of: existing, anchor, anchored)
            var report = items.report
            report.isUpToDate = true
            return report
        }
        let isFollowing =
            plan.isDescendantOfOurs && items.isSameAsTheirs && their.notes.isEmpty
            && their.state.epoch != our.state.epoch
            && their.state.keybag.generation >= our.state.keybag.generation
        guard isFollowing || !items.hasKeysOfTheirs else {
            throw .file(.conflict, .ancestry(.keysRotatedInCopy))
        }
        if isFollowing {
            if isRehearsal { return items.report }
            anchor.use(their.succession, of: their.record)
            return try follow(their, over: existing, our, anchor, anchored, reach, items.report)
        }

        var keybag = items.keybag
        keybag.generation = life.keybag
        try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
            try KeybagKeys.sign(&keybag, roots: our.roots)
        }
        guard let bytes = keybag.encoded() else {
            throw .file(.tooManySlots, .slots(.devicesOfBothFiles))
        }
        if isRehearsal { return items.report }
        let record = KeybagRecord(generation: keybag.generation, digest: Keybag.digest(of: bytes))
        anchor.use(try items.succession(), of: record)
        return try replace(existing, our, anchor, anchored, reach, items.report) {
            (file) throws(TokenStorageError) in
            var builder = try LogBuilder(
                file: file, codec: our.codec, tailBound: ours.configuration.tailBound,
                epoch: life.epoch, baseSequence: life.sequence, keybagCopy: bytes,
                keybag: record,
                ancestry: history)
            try items.write(to: &builder, progress: progress)
            return try builder.finish()
        }
    }

    /// Returns the file in the vault's place, checked. Its damage is not the copy's.
    private func checkedVault(_ existing: ExistingFile) throws(TokenStorageError) -> CheckedCopy {
        do throws(TokenStorageError) {
            return try CheckedCopy(ours, file: existing.file, progress: progress)
        } catch {
            guard case .damagedCopy(let cause) = error.reason else { throw error }
            throw .file(.corrupt, cause)
        }
    }

    /// Moves the anchor to the file in the vault's place, which the merge has read and does not replace. After a
    /// failure, the next use of the vault moves the anchor.
    private func noteReading(
        _ our: CheckedCopy, of existing: ExistingFile, _ anchor: Anchor, _ anchored: AnchorSlot?
    ) {
        guard !ours.configuration.isReadOnly, (try? existing.file.synchronize()) != nil,
            (try? place.directory.synchronize()) != nil
        else { return }
        anchor.advance(to: our.state, after: anchored)
    }

    /// Takes over the other file as it is, which has all of this file's commits and the same unlock methods.
    /// Two files that merge each other in turn become the same this way.
    private func follow(
        _ their: CheckedCopy, over existing: ExistingFile, _ our: CheckedCopy, _ anchor: Anchor,
        _ anchored: AnchorSlot?, _ reach: HighWaterMark, _ report: MergeReport
    ) throws(TokenStorageError) -> MergeReport {
        try replace(existing, our, anchor, anchored, reach, report) { (file) throws(TokenStorageError) in
            try onDisk { () throws(SystemFailure) in
                try their.state.file.copyBytes(to: file)
                // Deleting works on a full disk: the room for it must not be a hole.
                let (tail, size) = (their.state.tail, try file.attributes().size)
                let room = VaultFormat.reserve + VaultFormat.headroom(for: tail)
                if size > tail { try file.allocate(tail..<min(size, tail + room)) }
            }
            // A program that synchronises folders takes no lock, and may have written to the copy meanwhile.
            let copied = try CheckedCopy(theirs, file: file, progress: nil)
            defer { copied.wipe() }
            guard copied.state.head == their.state.head, copied.keybag == their.keybag else {
                throw .file(.conflict, .changedMeanwhile(.copyFile))
            }
            return copied.state
        }
    }

    /// Puts the file that `write` fills, and whose state it returns, in the place of `existing`.
    private func replace(
        _ existing: ExistingFile, _ our: CheckedCopy, _ anchor: Anchor, _ anchored: AnchorSlot?,
        _ reach: HighWaterMark, _ merged: MergeReport,
        by write: (any DiskFile) throws(TokenStorageError) -> LogState
    ) throws(TokenStorageError) -> MergeReport {
        let fresh = try AtomicFile(in: place, isAlone: false)
        let state: LogState
        let expected: AnchorSlot?
        do throws(TokenStorageError) {
            state = try write(fresh.file)
            try onDisk { () throws(SystemFailure) in try fresh.file.synchronize() }
            expected = try anchor.expect(state, seen: anchored, after: our.state, in: place)
        } catch {
            fresh.remove()
            throw error
        }
        var report = merged
        report.replaced = try fresh.replace(
            existing, last: existing.isClean(our, upTo: reach.lastFrame) ? reach.lastFrame : nil,
            codec: our.codec, keepingAside: true)
        defer { fresh.file.unlock() }
        try fresh.settle()
        switch anchor.advance(to: state, after: expected) {
        case .moved: break
        case .stuck:
            if place.state != nil { report.notes.append(BlockingFileVault.noteOnStuckAnchor) }
        case .overtaken: throw .file(.outcomeUnknown, .ancestry(.tookPlace))
        }
        return report
    }

    /// Throws `corrupt` where a copy is further ahead of the vault than devices come by changing it. A holder of the
    /// log key, or of keys that were rotated since, may have made such a copy, to use up the vault's numbers.
    private func requirePlausible(_ their: CheckedCopy, beside our: CheckedCopy) throws(TokenStorageError) {
        func isPlausible<Number: FixedWidthInteger>(
            _ theirs: Number, _ ours: Number, most: Number
        ) -> Bool { theirs <= ours || theirs - ours <= most }
        guard isPlausible(their.state.sequence, our.state.sequence, most: 1 << 40),
            isPlausible(their.state.epoch.number, our.state.epoch.number, most: 1 << 40),
            isPlausible(their.keybag.generation, our.keybag.generation, most: 1 << 20),
            isPlausible(their.keybag.nextSlot, our.keybag.nextSlot, most: 1 << 16)
        else { throw .damagedCopy(.damaged(.numbers)) }
    }

    /// Returns whether a file with this history has all that this device has seen.
    private func isAccepted(_ history: Ancestry, _ state: LogState, by anchored: AnchorSlot?) -> Bool {
        guard let anchored, anchored.coming != state.epoch else { return true }
        return history.contains(Ancestry.Commit(sequence: anchored.sequence, head: anchored.head))
    }

    /// Throws `forked` where the keys of a file do not come from those that this device knows of the vault.
    private func requireSuccession(
        _ copy: CheckedCopy, _ state: LogState, from anchored: AnchorSlot?
    ) throws(TokenStorageError) {
        guard let anchored, !copy.succession.follows(anchored.roots(in: state.epoch)) else { return }
        throw .file(.forked, .ancestry(.unrelatedKeys))
    }

    /// Throws `forked` where a file with this history lacks some of what this device has seen.
    private func requireDescent(
        _ history: Ancestry, _ state: LogState, from anchored: AnchorSlot?
    ) throws(TokenStorageError) {
        guard let anchored, !isAccepted(history, state, by: anchored) else { return }
        let commit = Ancestry.Commit(sequence: anchored.sequence, head: anchored.head)
        if history.mayHaveLeftOut(commit) { throw .forkedBeyondMemory }
        throw .file(.forked, .ancestry(.neitherHasAll))
    }
}
