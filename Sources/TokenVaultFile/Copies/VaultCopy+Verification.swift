public import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

extension VaultCopy {
    /// Reads every byte of the file and checks it as ``BlockingFileVault/verify(progress:)`` does. The file
    /// may be too damaged or too old to open as the vault. Changes nothing; writers wait meanwhile.
    /// `progress` gets the bytes done and the total.
    ///
    /// The copy must be unlocked (`locked`). The report has the damage.
    /// ``VerificationReport/isOlderThanSeen`` or ``VerificationReport/isForked`` says that the file lacks
    /// commits that this device has seen. Throws `conflict` when another file took its place meanwhile,
    /// `timedOut`, and the system's failures.
    public func verify(
        progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> VerificationReport {
        try during("verify") { () throws(TokenStorageError) in
            guard let ring = try openedKeybags().first?.ring else { throw .file(.locked) }
            let codec = FrameCodec(vault: vault, keys: ring.log)
            try lockForReading(file, until: Deadline(after: configuration.lockLimit))
            defer { file.unlock() }
            let opened = file
            try requireInPlace(try onDisk { () throws(SystemFailure) in try opened.attributes().identity })
            do throws(TokenStorageError) {
                let loader = loader(codec, keptIn: location.state)
                var report = try loader.report(
                    on: file, checkingBy: { ContentChecker(ring: ring) }, progress)
                report.isOlderThanSeen = !report.isClean && isOlder(loader)
                if let anchored = try loader.anchor.read() {
                    report.isForked = !anchored.mayBeFollowed(by: ring.facts.succession)
                }
                return report
            } catch {
                guard error.code == .rolledBack || error.code == .forked else { throw error }
                var report = try loader(codec, keptIn: nil).report(
                    on: file, checkingBy: { ContentChecker(ring: ring) }, progress)
                report.isOlderThanSeen = error.code == .rolledBack
                report.isForked = error.code == .forked
                return report
            }
        }
    }

    func loader(_ codec: FrameCodec, keptIn state: (any DiskDirectory)?) -> LogLoader {
        LogLoader(
            location: location, codec: codec,
            anchor: Anchor(directory: state, vault: vault, key: codec.keys.anchor),
            lockTimeout: configuration.lockLimit)
    }

    /// Returns whether the log, perhaps damaged, is of an earlier epoch than the last one that this device
    /// has seen. Also returns true when it ends in front of the last seen commit, with nothing behind that
    /// could have been that commit.
    private func isOlder(_ loader: LogLoader) -> Bool {
        guard let anchored = try? loader.anchor.read() else { return false }
        var reach = HighWaterMark()
        try? reach.include(file, loader.codec)
        guard let last = reach.lastFrame else { return false }
        if reach.epoch != anchored.epoch.number { return reach.epoch < anchored.epoch.number }
        let scanner = LogScanner(file: file, codec: loader.codec, chunk: 64 << 10)
        return reach.sequence < anchored.sequence && (try? scanner.isZeroToEnd(from: last.end)) ?? false
    }
}
