internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// A copy whose log was read and whose every byte was checked, with its keys.
struct CheckedCopy {
    /// The state of its log; `log` has the items.
    let state: LogState
    private let log: SurveyedLog
    private let loader: LogLoader
    let codec: FrameCodec
    let place: VaultLocation
    let keybag: Keybag
    /// The record by which a log names that keybag.
    let record: KeybagRecord
    let classes: KeybagClasses
    /// The keys that the keybag in use gives.
    let ring: KeyRing
    /// The roots, in separate memory.
    let roots: KeyRing.Roots
    /// The damage that the new file does not take over.
    let notes: [String]
    /// The number of its items that this device cannot read.
    let foreignItems: Int

    /// Reads `file`, the copy's file. Throws `corrupt` where its log or an item is damaged. Throws
    /// `wrongPassphrase` when the method that opened it was removed before, and `notPermitted` when the
    /// method does not open everything.
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
            throw .damagedCopy(error.reason)
        }
        let state = surveyed.state
        self.state = state
        log = surveyed.log
        guard let opened = candidates.first(where: { $0.copy.isNamed(by: state.keybag) }) else {
            let isKnown = copy.hasKeybag(namedBy: state.keybag)
            let there = try KeybagCopies(reading: file).whole
            if !isKnown, there.contains(where: { Keybag.digest(of: $0.bytes) == state.keybag.digest }) {
                // The change came after the copy was opened.
                throw .file(.conflict, .changedMeanwhile(.copy))
            }
            throw isKnown ? .file(.wrongPassphrase) : .damagedCopy(.damaged(.keybagInUse))
        }
        keybag = opened.keybag
        record = opened.copy.record
        classes = KeybagClasses(opened.keybag)
        let ring = opened.ring
        self.ring = ring
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
            throw .file(.notPermitted, .permission(.everything))
        }
        do throws(KeybagKeys.Failure) {
            roots = try held.copied()
        } catch {
            throw .file(.resourcesExhausted, .shortage(.guardedMemory))
        }
    }

    /// The names of the roots that the keybag is under, and of those before them.
    var succession: Succession { ring.facts.succession }

    /// Every item that does not read as absent with its newest entry, in the order of their places in the file.
    var items: [(ItemIdentifier, IndexEntry)] {
        log.itemsByOffset().filter { !classes.lacksKeys(of: $0.1) }
    }

    /// Returns the newest entry of an item; `nil` where it reads as absent.
    func entry(of item: ItemIdentifier) -> IndexEntry? {
        log.entry(of: item).flatMap { classes.lacksKeys(of: $0) ? nil : $0 }
    }

    /// Returns all commits of the file: those that it descends from, and its own.
    func history() throws(TokenStorageError) -> Ancestry {
        try loader.history(of: state)
    }

    func scanner() -> LogScanner { LogScanner(file: state.file, codec: codec, chunk: 256 << 10) }

    /// Returns whether the keys of an item are held.
    func opens(_ entry: IndexEntry) -> Bool { keys(of: entry) != nil }

    private func keys(of entry: IndexEntry) -> ClassKeys? {
        guard
            case .keys(let keys) = ring.access(
                policy: entry.policy, setTag: entry.setTag, version: entry.keyVersion)
        else { return nil }
        return keys
    }

    /// Returns an item's metadata; `nil` where its keys are not held. Throws `corrupt` where the metadata are
    /// not what was sealed.
    func metadata(
        of item: ItemIdentifier, _ entry: IndexEntry, _ scanner: inout LogScanner
    ) throws(TokenStorageError) -> StoredMetadata? {
        guard let keys = keys(of: entry) else { return nil }
        let content = try scanner.contents(of: item, entry)
        guard
            let stored = try ItemSealer.openMetadata(
                content, in: 0..<Int(entry.metadataLength), of: item, generation: entry.generation,
                valueTag: entry.valueTag, keys: keys
            )
        else { throw .damage(at: entry.offset, .item) }
        return stored
    }

    /// Returns an item; `nil` where its keys are not held. Throws `corrupt` where the contents are not what
    /// was sealed.
    func open(
        _ item: ItemIdentifier, _ entry: IndexEntry, _ scanner: inout LogScanner
    ) throws(TokenStorageError) -> TokenItem? {
        guard let keys = keys(of: entry) else { return nil }
        let content = try scanner.contents(of: item, entry)
        let split = Int(entry.metadataLength)
        guard
            let stored = try ItemSealer.openMetadata(
                content, in: 0..<split, of: item, generation: entry.generation, valueTag: entry.valueTag,
                keys: keys),
            let secret = try ItemSealer.openBody(
                content, in: split..<content.count, of: item, generation: entry.generation,
                valueTag: entry.valueTag, keys: keys)
        else { throw .damage(at: entry.offset, .item) }
        return TokenItem(metadata: ring.metadata(stored, of: item, under: keys), secret: secret)
    }

    /// Returns notes on damage that the new file does not take over. Throws `corrupt` for other damage.
    private static func notes(_ report: VerificationReport) throws(TokenStorageError) -> [String] {
        let inLog = report.problems.filter { $0.offset >= VaultFormat.logStart }
        if let first = inLog.first {
            throw .damagedCopy(first.part.map { .damage($0, offset: first.offset) })
        }
        return report.problems.map { "in the copy: \($0.description)" }
            + report.notes.map { "in the copy: \($0)" }
    }

    func wipe() {
        roots.all?.wipe()
        roots.holder.wipe()
        roots.passcode?.wipe()
    }

    /// Writes the items, still sealed, into a new file, durably; returns the state of its log.
    func write(
        to file: any DiskFile, keybag bytes: [UInt8], generation: UInt64, epoch: Epoch, sequence: UInt64,
        tailBound: Int, progress: ((Int, Int) -> Void)?
    ) throws(TokenStorageError) -> LogState {
        var builder = try LogBuilder(
            file: file, codec: codec, tailBound: tailBound, epoch: epoch, baseSequence: sequence,
            keybagCopy: bytes,
            keybag: KeybagRecord(generation: generation, digest: Keybag.digest(of: bytes)),
            ancestry: try history())
        let items = log.itemsByOffset()
        var scanner = scanner()
        for (position, (item, entry)) in items.enumerated() {
            try builder.copy(IndexRecord(item, entry, .newest), from: &scanner)
            if position.isMultiple(of: 1_024) { progress?(position, items.count) }
        }
        progress?(items.count, items.count)
        let written = try builder.finish()
        try onDisk { () throws(SystemFailure) in try file.synchronize() }
        return written
    }
}

extension TokenStorageError {
    static func damagedCopy(_ cause: Reason?) -> TokenStorageError {
        .file(.corrupt, .damagedCopy(cause))
    }
}
