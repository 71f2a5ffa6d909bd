internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// A copy whose log was read and whose every byte was checked, with the keys to it.
struct CheckedCopy {
    /// Where its log stands; what items there are, `log` says.
    let state: LogState
    private let log: SurveyedLog
    private let loader: LogLoader
    let codec: FrameCodec
    let place: VaultLocation
    let keybag: Keybag
    /// What opens the classes, in memory of their own.
    let roots: KeyRing.Roots
    /// What is wrong with it and does not come along.
    let notes: [String]
    /// How many of its items this device cannot read.
    let foreignItems: Int

    /// Reads `file`, which is the copy's. Throws `corrupt` where its log or an item is damaged, `wrongPassphrase`
    /// when the method that opened it was removed before, `notPermitted` when that does not open everything.
    init(
        _ copy: VaultCopy, file: any DiskFile, progress: ((Int, Int) -> Void)?
    ) throws(TokenStorageError) {
        let candidates = try copy.openedKeybags()
        guard let first = candidates.first else { throw .file(.locked) }
        let codec = FrameCodec(vault: copy.vault, keys: first.ring.log)
        self.codec = codec
        place = copy.location
        let loader = LogLoader(
            location: copy.location, codec: codec,
            anchor: Anchor(directory: nil, vault: copy.vault, key: codec.keys.anchor),
            lockTimeout: copy.configuration.lockLimit)
        self.loader = loader
        let surveyed: LogLoader.Surveyed
        let report: VerificationReport
        do throws(TokenStorageError) {
            let ring = first.ring
            (surveyed, report) = try loader.verify(
                file, checkingBy: { ContentChecker(ring: ring) }, progress)
        } catch {
            guard error.code == .corrupt else { throw error }
            throw .damagedCopy(error.underlying)
        }
        let state = surveyed.state
        self.state = state
        log = surveyed.log
        guard let opened = candidates.first(where: { $0.isNamed(by: state.keybag) }) else {
            let isKnown = copy.hasKeybag(namedBy: state.keybag)
            let there = try KeybagCopies(reading: file).whole
            if !isKnown, there.contains(where: { Keybag.digest(of: $0.bytes) == state.keybag.digest }) {
                // It came after the copy was opened.
                throw .file(
                    .conflict, underlying: "its unlock methods or devices were changed meanwhile",
                    advice: "try again")
            }
            throw candidates.contains { $0.keybag.generation > state.keybag.generation }
                ? .damagedCopy("no copy of the keybag is the one in use") : .file(.wrongPassphrase)
        }
        keybag = opened.keybag
        let ring = opened.ring
        foreignItems = surveyed.log.itemsByOffset().count { _, entry in
            if case .wrongDevice = ring.access(
                policy: entry.policy, setTag: entry.setTag, version: entry.keyVersion)
            {
                true
            } else {
                false
            }
        }
        notes = try Self.notes(report)
        guard let held = opened.ring.roots, held.all != nil else {
            throw .file(.notPermitted, advice: KeyRing.Roots.adviceWithoutRoot)
        }
        do throws(KeybagKeys.Failure) {
            roots = try held.copied()
        } catch {
            throw .file(.resourcesExhausted, underlying: "no guarded memory")
        }
    }

    /// What is wrong with what does not come along. Throws `corrupt` where something else is.
    private static func notes(_ report: VerificationReport) throws(TokenStorageError) -> [String] {
        let inLog = report.problems.filter { $0.offset >= VaultFormat.logStart }
        if let first = inLog.first { throw .damagedCopy("\(first.description) at byte \(first.offset)") }
        return report.problems.map { "in the copy: \($0.description)" }
            + report.notes.map { "in the copy: \($0)" }
    }

    func wipe() {
        roots.all?.wipe()
        roots.holder.wipe()
        roots.passcode?.wipe()
    }

    /// Writes the items, sealed as they are, into a file of their own, durably; returns the state of its log.
    func write(
        to file: any DiskFile, keybag bytes: [UInt8], generation: UInt64, epoch: Epoch, sequence: UInt64,
        tailBound: Int, progress: ((Int, Int) -> Void)?
    ) throws(TokenStorageError) -> LogState {
        var builder = try LogBuilder(
            file: file, codec: codec, tailBound: tailBound, epoch: epoch, baseSequence: sequence,
            keybagCopy: bytes,
            keybag: KeybagRecord(generation: generation, digest: Keybag.digest(of: bytes)),
            ancestry: try loader.history(of: state.file, upTo: state.tail))
        let items = log.itemsByOffset()
        var scanner = LogScanner(file: state.file, codec: codec, chunk: 256 << 10)
        for (position, (item, entry)) in items.enumerated() {
            try builder.copy(item, entry, from: &scanner)
            if position.isMultiple(of: 1_024) { progress?(position, items.count) }
        }
        progress?(items.count, items.count)
        let written = try builder.finish()
        try onDisk { () throws(SystemFailure) in try file.synchronize() }
        return written
    }
}

extension TokenStorageError {
    static func damagedCopy(_ what: String?) -> TokenStorageError {
        .file(.corrupt, underlying: what.map { "the copy: \($0)" } ?? "the copy")
    }
}
