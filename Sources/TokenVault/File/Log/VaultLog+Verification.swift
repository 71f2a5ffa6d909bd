internal import TokenVaultPlatform

extension VaultLog {
    /// Verifies the file at the path while writers wait.
    func verify(
        progress: ((Int, Int) -> Void)?,
        openContents: @escaping FrameInspection.Opening
    ) throws(TokenStorageError) -> VerificationReport {
        let inspection = FrameInspection(codec: codec, openContents: openContents)
        let deadline = Deadline(after: lockTimeout)
        while true {
            let file = try VaultFiles.open(location)
            // Who opened the vault for reading only takes no lock, and looks again where something changed meanwhile.
            let lock = location.obstacle == nil ? WriterLock(file: file) : nil
            try lock?.take(.shared, until: deadline)
            defer { lock?.release() }
            // The state of the file as it is now, under the lock, whatever this process has seen of it.
            if try isReplaced(file) { continue }
            let size = try onDisk { () throws(SystemFailure) in try file.attributes().size }
            var verifier = LogVerifier(file: file, size: size, codec: codec, progress: progress)
            var report: VerificationReport
            let state: LogState
            do throws(TokenStorageError) {
                let ahead = FrameReadAhead(file: file, inspection: inspection, from: VaultFormat.logStart)
                state = try loader.loadLocked(file, .walking(ahead)) { (frame, _) throws(TokenStorageError) in
                    try verifier.add(frame, inspection: inspection)
                }
                report = try verifier.finish(named: state.keybag, live: state.index, end: state.tail)
            } catch {
                guard error.code == .corrupt else { throw error }
                if lock == nil, !deadline.hasPassed, (try? loader.load(file)) != nil { continue }
                return VerificationReport(
                    frames: 0, items: 0, checkedByDigestOnly: 0, bytes: 0,
                    problems: [
                        VerificationReport.Problem(offset: 0, description: error.underlying ?? "damaged")
                    ], notes: [])
            }
            if let problem = try problem(ofIndexIn: file, against: state.index) {
                report.problems.append(problem)
            }
            if lock == nil, !report.isClean, !deadline.hasPassed, try hasChanged(since: state) { continue }
            return report
        }
    }

    /// Whether somebody has written since `state` was read.
    private func hasChanged(since state: LogState) throws(TokenStorageError) -> Bool {
        let now = try loader.load(state.file)
        return now.identity != state.identity || now.tail != state.tail || now.chain != state.chain
            || now.keybag != state.keybag
    }

    /// What is wrong with the index block of `file`, whose log says `walked`.
    private func problem(
        ofIndexIn file: any DiskFile, against walked: LogIndex
    ) throws(TokenStorageError) -> VerificationReport.Problem? {
        let index = try loader.loadLocked(file, .byIndex(seen: nil)).index
        guard let block = index.block else { return nil }
        do throws(TokenStorageError) {
            var items = 0
            var isRight = true
            try index.forEachItem { (item, entry) throws(TokenStorageError) in
                items += 1
                if try walked.entry(of: item) != entry { isRight = false }
            }
            let counted = try walked.figures().items
            if isRight, items == counted { return nil }
        } catch {
            if error.code != .corrupt { throw error }
        }
        return VerificationReport.Problem(
            offset: block.offset, description: "an index that is not of what the log holds")
    }
}
