public import SystemPackage
public import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

extension VaultCopy {
    /// Copies the whole parts of this file, which may be damaged anywhere, into a new vault at `path`, mode
    /// 0600, with the same slots. The file itself is not changed.
    ///
    /// Frames are searched for at every place behind damage, and only frames that authenticate count. Of each
    /// item the newest whole value is saved, still sealed, so that items of other devices and classes are
    /// saved too. Deleted items stay deleted. Where a deletion or a newer value may be lost, or the value may be that of an
    /// earlier file, ``SalvageReport/mayBeOlder`` counts the item. Bring the new file into the vault's place with
    /// ``restore(to:progress:)``.
    ///
    /// The copy must be unlocked (`locked`) by a slot that opens everything (`notPermitted`). `progress` gets the bytes
    /// or items done and the total. Throws `alreadyExists` rather than overwriting, and `unexpectedVault` where this
    /// device expects another vault at `path`. Throws `conflict` when another file took the copy's place meanwhile, and
    /// `wrongPassphrase` when the slot was removed before. Also throws `noSpace`, `timedOut`, and the system's
    /// failures. After an error there is no file.
    public func salvage(
        to path: FilePath, progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> SalvageReport {
        try during("salvage") { () throws(TokenStorageError) in
            var stateless = configuration
            stateless.stateDirectory = nil
            return try salvage(
                to: try VaultLocation.real(path, configuration: stateless, creating: false),
                progress: progress)
        }
    }

    package func salvage(
        to place: VaultLocation, progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> SalvageReport {
        try during("salvage") { () throws(TokenStorageError) in
            try VaultCreation(location: place, configuration: configuration).refuseExisting()
            try VaultPlaces.requireExpected(vault, at: place, knownTo: location.state)
            let keybags = try openedKeybags()
            guard let first = keybags.first else { throw .file(.locked) }
            // As for restoring: a new epoch of the log requires all of the keys.
            guard first.ring.roots?.all != nil else {
                throw .file(.notPermitted, .permission(.everything))
            }
            let codec = FrameCodec(vault: vault, keys: first.ring.log)
            try lockForReading(file, until: Deadline(after: configuration.lockLimit))
            defer { file.unlock() }
            // A file that a compaction replaced is whole, and older than the present file.
            let opened = file
            try requireInPlace(try onDisk { () throws(SystemFailure) in try opened.attributes().identity })
            let anchor = Anchor(directory: location.state, vault: vault, key: codec.keys.anchor)
            var salvage = LogSalvage(file: file, codec: codec) { record in
                keybags.contains { $0.copy.isNamed(by: record) && $0.keybag.keptValues == 0 }
            }
            let anchored = try anchor.read(choosing: true)
            try salvage.read(anchored: anchored, progress: progress)
            let keybag = try keybagToSave(keybags, named: salvage.named)
            let classes = KeybagClasses(keybag.keybag)
            let items = salvage.takeItems { classes.mayOpen($0) }
            var report = salvage.report
            report.notes += try noteOfAnotherVault()
            if salvage.named == nil {
                report.notes.append(
                    "it is unknown which keybag was in use: the slots are those of the newest copy")
            } else if keybag.copy.record != salvage.named {
                report.losses.insert(
                    SalvageReport.Loss(
                        offset: 0, length: 0,
                        description:
                            "the keybag in use is damaged: the slots and devices are those of another copy"),
                    at: 0)
            } else if !report.losses.isEmpty {
                report.notes.append(
                    "a change of slots or devices may be lost or come from another file: check \"vaultctl slot list\" "
                        + "before other programs use the new vault")
            }
            // The lost part may be what another device has seen.
            let isWhole = report.losses.isEmpty && report.mayBeOlder == 0
            let past = isWhole ? salvage.history : Ancestry()
            try write(items, keybag, salvage.reach, past, codec, to: place, progress: progress)
            if let anchored {
                if let found = salvage.epoch, found.number < anchored.epoch.number {
                    report.isOlderThanSeen = true
                    report.notes.append(
                        "this copy is older than the vault that this device has seen: later stores, replacements and "
                            + "deletions are missing")
                } else if isWhole, anchored.coming != salvage.epoch,
                    !salvage.history.contains(
                        Ancestry.Commit(sequence: anchored.sequence, head: anchored.head))
                {
                    report.isOlderThanSeen = true
                    report.notes.append(
                        "this file lacks the last changes that this device has seen: it is a fork, or its end is missing"
                    )
                }
                if !anchored.mayBeFollowed(by: keybag.ring.facts.succession) {
                    report.isOlderThanSeen = true
                    report.notes.append(
                        "the keys do not descend from those that this device knows: a removed unlock method may have "
                            + "written this file, and opens the new vault")
                } else if keybag.keybag.generation < anchored.keybagGeneration {
                    report.isOlderThanSeen = true
                    report.notes.append(
                        "the slots and devices are older than those that this device has seen: slots that were changed or "
                            + "removed since open the new vault")
                }
            }
            return report
        }
    }

    /// Returns a note when this device remembers another vault at the path of the file.
    private func noteOfAnotherVault() throws(TokenStorageError) -> [String] {
        do throws(TokenStorageError) {
            try VaultPlaces.requireExpected(vault, at: location, knownTo: location.state)
            return []
        } catch {
            guard error.code == .unexpectedVault else { throw error }
            return ["this is not the vault that this device remembers at this path"]
        }
    }

    /// Returns the keybag that the log names, or the next best one.
    private func keybagToSave(
        _ opened: [OpenedKeybag], named: KeybagRecord?
    ) throws(TokenStorageError) -> OpenedKeybag {
        guard let newest = opened.first else { throw .file(.locked) }
        guard let named else { return newest }
        if let inUse = opened.first(where: { $0.copy.isNamed(by: named) }) { return inUse }
        // The keybag in use is whole, and the given method opens only an earlier one.
        if hasKeybag(namedBy: named) { throw .file(.wrongPassphrase) }
        return newest
    }

    private func write(
        _ items: [(ItemIdentifier, IndexEntry)], _ keybag: OpenedKeybag, _ reach: HighWaterMark,
        _ past: Ancestry, _ codec: FrameCodec, to place: VaultLocation, progress: ((Int, Int) -> Void)?
    ) throws(TokenStorageError) {
        let life = try reach.next()
        let fresh = try AtomicFile(in: place, isAlone: true)
        do throws(TokenStorageError) {
            var builder = try LogBuilder(
                file: fresh.file, codec: codec, tailBound: configuration.tailBound, epoch: life.epoch,
                baseSequence: life.sequence, keybagCopy: keybag.copy.bytes,
                keybag: KeybagRecord(
                    generation: keybag.keybag.generation, digest: Keybag.digest(of: keybag.copy.bytes)),
                ancestry: past)
            var scanner = LogScanner(file: file, codec: codec, chunk: 256 << 10)
            for (position, (item, entry)) in items.enumerated() {
                try builder.copy(IndexRecord(item, entry, .newest), from: &scanner)
                if position.isMultiple(of: 1_024) { progress?(position, items.count) }
            }
            progress?(items.count, items.count)
            _ = try builder.finish()
            try onDisk { () throws(SystemFailure) in try fresh.file.synchronize() }
        } catch {
            fresh.remove()
            throw error
        }
        try fresh.takeName()
        defer { fresh.file.unlock() }
        try fresh.settle()
    }
}
