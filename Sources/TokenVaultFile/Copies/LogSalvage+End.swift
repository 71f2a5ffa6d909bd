internal import TokenVaultCore
internal import TokenVaultPlatform

extension LogSalvage {
    /// Decides about the end of the log: a commit that a crash cut short is no loss, as it was never
    /// acknowledged.
    mutating func end(_ anchored: AnchorSlot?) throws(TokenStorageError) {
        // After a loss, the first frame may belong to another file.
        let isOfAnchor =
            anchored.map { epoch == nil || $0.epoch == epoch || !report.losses.isEmpty || suspect != nil }
            ?? false
        let seen = isOfAnchor ? anchored?.sequence ?? 0 : 0
        let (failing, cut) = failure()
        let isTorn = if let failing { try isTorn(at: failing) } else { true }
        if seen <= sequence(before: cut), isTorn {
            if let place = failing ?? pending.first?.entry.offset {
                report.notes.append("a commit that a crash cut short, at byte \(place)")
            }
            group.removeSubrange(cut...)
            pending = []
            suspect = nil
            flush()
        } else {
            dismissSuspect()
            if let gap {
                lose(Loss(range: gap, what: "bytes that are no frame", isDoubtful: true))
                doubtEnd = .max
            } else if seen > completeSequence {
                let what = "the end of the log, which this device has seen"
                lose(Loss(range: endOfFrames..<endOfFrames, what: what, isDoubtful: true))
                doubtEnd = .max
            }
        }
        gap = nil
        guard !hasLaterCommit, report.losses.isEmpty else { return }
        let what = "the end of what was written with the file"
        lose(Loss(range: endOfFrames..<endOfFrames, what: what, isDoubtful: !hasEachItemOnce))
    }

    /// Returns the first damaged place among the frames written last, and the number of records in front of
    /// the commit that has it.
    private func failure() -> (place: Int?, cut: Int) {
        let end = suspect?.cut ?? group.count
        if let torn = group[..<end].firstIndex(where: { !$0.isIntact }) {
            let begin = group[...torn].lastIndex { $0.beginsCommit } ?? torn
            return (group[torn].entry.offset, begin)
        }
        return (suspect?.offset ?? gap?.lowerBound, end)
    }

    /// Returns the newest commit before the record at `cut` of the group.
    private func sequence(before cut: Int) -> UInt64 {
        max(completeSequence, cut > 0 ? group[cut - 1].entry.generation : 0)
    }

    private func isTorn(at offset: Int) throws(TokenStorageError) -> Bool {
        do throws(TokenStorageError) {
            try TailClassifier(file: file, codec: codec).requireTorn(at: offset)
            return true
        } catch {
            if error.code == .corrupt { return false }
            throw error
        }
    }
}
