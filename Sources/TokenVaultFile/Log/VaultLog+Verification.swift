package import TokenVaultCore
internal import TokenVaultPlatform

extension VaultLog {
    /// Verifies the file at the path while writers wait.
    func verify<Contents: ContentChecking & ~Copyable>(
        progress: ((Int, Int) -> Void)?,
        checkingBy maker: @escaping @Sendable () -> Contents
    ) throws(TokenStorageError) -> VerificationReport {
        let deadline = Deadline(after: lockTimeout)
        var odd = OddSight<[VerificationReport.Problem]>(until: deadline)
        while true {
            let file = try loader.openReplacement()
            // A vault opened for reading only works without a lock: an odd sight may be a write that is under
            // way.
            let lock = location.readOnlyReason == nil ? WriterLock(file: file) : nil
            try lock?.take(.shared, until: deadline)
            defer { lock?.release() }
            // The state is the file's present one, under the lock, whatever this process has seen of it.
            if try isReplaced(file) { continue }
            let result = Result { () throws(TokenStorageError) in
                try loader.report(on: file, checkingBy: maker, progress)
            }
            guard lock == nil, let problems = result.problems else { return try result.get() }
            if try odd.isSettled(problems, of: file) { return try result.get() }
        }
    }
}

extension LogLoader {
    /// Verifies all of `file`, in which no process writes meanwhile; damage is in the report.
    func report<Contents: ContentChecking & ~Copyable>(
        on file: any DiskFile, checkingBy maker: @escaping @Sendable () -> Contents,
        _ progress: ((Int, Int) -> Void)?
    ) throws(TokenStorageError) -> VerificationReport {
        var report: VerificationReport
        let surveyed: LogLoader.Surveyed
        do throws(TokenStorageError) {
            (surveyed, report) = try verify(file, checkingBy: maker, progress)
        } catch {
            guard error.code == .corrupt else { throw error }
            return VerificationReport(of: error)
        }
        if let problem = try problem(ofIndexIn: file, against: surveyed.log) {
            report.problems.append(problem)
        }
        return report
    }

    /// The fewest pages of an index that are worth a thread.
    private static let leastPages = 64

    /// Returns the problem with the index block of `file`, whose log was surveyed.
    private func problem(
        ofIndexIn file: any DiskFile, against log: SurveyedLog
    ) throws(TokenStorageError) -> VerificationReport.Problem? {
        let index = try loadLocked(file, .byIndex(seen: nil)).index
        guard let block = index.block else { return nil }
        do throws(TokenStorageError) {
            let counts = try Parallel.map(block.summary.pages, least: Self.leastPages) {
                (pages) throws(TokenStorageError) in
                var counts = (right: 0, wrong: 0)
                try index.forEachItem(ofPages: pages) { item, entry in
                    if log.entry(of: item) == entry { counts.right += 1 } else { counts.wrong += 1 }
                }
                return counts
            }
            var right = counts.reduce(0) { $0 + $1.right }
            var wrong = counts.reduce(0) { $0 + $1.wrong }
            index.forEachNewItem { item, entry in
                if log.entry(of: item) == entry { right += 1 } else { wrong += 1 }
            }
            if wrong == 0, right == log.items, try index.figures().items == log.items { return nil }
        } catch {
            if error.code != .corrupt { throw error }
        }
        return VerificationReport.Problem(.otherIndex, at: block.offset)
    }

    /// Surveys `file` as ``survey(_:checkingBy:_:)`` does, and reports on all of it but its index.
    func verify<Contents: ContentChecking & ~Copyable>(
        _ file: any DiskFile, checkingBy maker: @escaping @Sendable () -> Contents,
        _ progress: ((Int, Int) -> Void)?
    ) throws(TokenStorageError) -> (Surveyed, VerificationReport) {
        let size = try onDisk { () throws(SystemFailure) in try file.attributes().size }
        let surveyed = try survey(file, checkingBy: maker) { progress?($0, size) }
        var verifier = LogVerifier(surveyed.log, file: file, codec: codec)
        let report = try verifier.verify(surveyed.state)
        progress?(size, size)
        return (surveyed, report)
    }
}

extension Result<VerificationReport, TokenStorageError> {
    /// The problems that a second look might not show; `nil` when there are none of that kind.
    fileprivate var problems: [VerificationReport.Problem]? {
        switch self {
        case .success(let report): report.isClean ? nil : report.problems
        case .failure(let error):
            error.code.mayBeOfOldFile ? VerificationReport(of: error).problems : nil
        }
    }
}

extension VerificationReport {
    /// Creates the sight of `error`, which kept the vault from being looked at any further.
    package init(of error: TokenStorageError) {
        let problem =
            if case .damage(let part, let offset)? = error.reason {
                Problem(part, at: offset)
            } else {
                Problem(error)
            }
        self.init(
            frames: 0, items: 0, checkedByDigestOnly: 0, bytes: 0,
            problems: error.code == .rolledBack ? [] : [problem], notes: [])
        isOlderThanSeen = error.code == .rolledBack
    }
}
