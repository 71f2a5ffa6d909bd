internal import TokenVaultPlatform

extension VaultLog {
    /// Verifies the file at the path while writers wait.
    func verify(
        progress: ((Int, Int) -> Void)?,
        openContents: @escaping FrameInspection.Opening
    ) throws(TokenStorageError) -> VerificationReport {
        let inspection = FrameInspection(codec: codec, openContents: openContents)
        let deadline = Deadline(after: lockTimeout)
        var attempts = location.obstacle == nil ? 1 : Self.attemptsWithoutLock
        var backOff = BackOff()
        while true {
            let file = try VaultFiles.open(location)
            // Who opened the vault for reading only takes no lock: what looks wrong may be a write that is under way.
            let lock = location.obstacle == nil ? WriterLock(file: file) : nil
            try lock?.take(.shared, until: deadline)
            defer { lock?.release() }
            // The state of the file as it is now, under the lock, whatever this process has seen of it.
            if try isReplaced(file) { continue }
            attempts -= 1
            let result = Result { () throws(TokenStorageError) in
                try verify(file, inspection, progress: progress)
            }
            if attempts > 0, !result.isClean, backOff.wait(until: deadline) { continue }
            return try result.get()
        }
    }

    private static let attemptsWithoutLock = 10

    /// Verifies `file`, in which nobody writes meanwhile.
    private func verify(
        _ file: any DiskFile, _ inspection: FrameInspection, progress: ((Int, Int) -> Void)?
    ) throws(TokenStorageError) -> VerificationReport {
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
            return VerificationReport(
                frames: 0, items: 0, checkedByDigestOnly: 0, bytes: 0,
                problems: [
                    VerificationReport.Problem(offset: 0, description: error.underlying ?? "damaged")
                ], notes: [])
        }
        if let problem = try problem(ofIndexIn: file, against: state.index) {
            report.problems.append(problem)
        }
        return report
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

extension Result<VerificationReport, TokenStorageError> {
    /// Whether there is nothing that a second look might not show.
    fileprivate var isClean: Bool {
        switch self {
        case .success(let report): report.isClean
        case .failure(let error): error.code != .corrupt && error.code != .rolledBack
        }
    }
}
