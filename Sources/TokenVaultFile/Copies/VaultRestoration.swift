internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Puts a copy in a vault's place: a new file with the copy's items, in a new epoch of the log.
struct VaultRestoration {
    let copy: VaultCopy
    let place: VaultLocation
    /// Whether the restoration decides which of two files is the vault.
    let isAdopting: Bool
    let progress: ((Int, Int) -> Void)?

    func run() throws(TokenStorageError) -> RestoreReport {
        if copy.configuration.isReadOnly { throw ReadOnlyReason.requested.error }
        let deadline = Deadline(after: copy.configuration.lockLimit)
        while true {
            let existing = try ExistingFile(at: place)
            if let existing {
                try WriterLock(file: existing.file).take(.exclusive, until: deadline)
            }
            defer { existing?.file.unlock() }
            guard try isStillThere(existing) else {
                if deadline.hasPassed { throw .file(.timedOut) }
                continue
            }
            return try restore(over: existing, until: deadline)
        }
    }

    /// Returns whether the path still leads to the locked file.
    private func isStillThere(_ existing: ExistingFile?) throws(TokenStorageError) -> Bool {
        let place = place
        let there = try onDisk { () throws(SystemFailure) in
            try place.directory.attributes(of: place.name)
        }
        return there?.identity == existing?.identity
    }

    /// Puts the copy over `existing`, whose lock the caller holds.
    private func restore(
        over existing: ExistingFile?, until deadline: Deadline
    ) throws(TokenStorageError) -> RestoreReport {
        try place.requireTrustedDirectory()
        try existing?.check(is: copy.vault)
        if !isAdopting { try VaultPlaces.requireExpected(copy.vault, at: place, knownTo: place.state) }
        if let existing { try HardLinks(location: place).requireNone(of: existing.file) }
        let identity = try onDisk { () throws(SystemFailure) in try copy.file.attributes().identity }
        // The paths are compared: a compaction may have put another file there since the copy was opened.
        let isInPlace = existing != nil && (existing?.identity == identity || copy.path == place.path)
        let source = isInPlace ? existing?.file ?? copy.file : copy.file
        if !isInPlace { try copy.lockForReading(source, until: deadline) }
        defer { if !isInPlace { source.unlock() } }
        if !isInPlace { try copy.requireInPlace(identity) }

        let loaded = try CheckedCopy(copy, file: source, progress: progress)
        defer { loaded.wipe() }
        let other = try VaultPlaces.otherFile(of: copy.vault, than: place, existing)
        if let other, !isAdopting { throw .duplicate(other.path) }
        var reach = HighWaterMark()
        reach.include(loaded.state)
        if let other { try? reach.include(other.file, loaded.codec) }
        let anchor = Anchor(directory: place.state, vault: copy.vault, key: loaded.codec.keys.anchor)
        let anchored = try anchor.read(choosing: true)
        if let anchored { reach.include(anchored) }
        if let existing { try reach.include(existing.file, loaded.codec) }
        let life = try reach.next()

        var keybag = loaded.keybag
        keybag.generation = life.keybag
        try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
            try KeybagKeys.sign(&keybag, roots: loaded.roots)
        }
        guard let bytes = keybag.encoded() else { throw .file(.internalError) }
        let fresh = try AtomicFile(in: place, isAlone: existing == nil)
        let state: LogState
        let expected: AnchorSlot?
        do throws(TokenStorageError) {
            state = try loaded.write(
                to: fresh.file, keybag: bytes, generation: keybag.generation, epoch: life.epoch,
                sequence: life.sequence, tailBound: copy.configuration.tailBound, progress: progress)
        } catch {
            fresh.remove()
            throw error
        }
        do throws(TokenStorageError) {
            let former = anchored?.coming == nil ? nil : existing?.state(in: place, loaded.codec)
            anchor.use(loaded.succession, of: state.keybag)
            expected = try anchor.expect(
                state, choosingRoots: true, seen: anchored, after: former, in: place)
        } catch {
            fresh.remove()
            throw error
        }
        var report = RestoreReport(
            items: try state.index.figures().items, replaced: nil, staleCopy: other?.path,
            notes: loaded.notes + Self.notes(ofForeign: loaded.foreignItems)
                + notes(
                    of: loaded, replacing: existing, anchored,
                    hasKnownKeys: !anchor.isUnderOtherKey
                        && anchored?.mayBeFollowed(by: loaded.succession) ?? true))
        if let existing {
            let isSame = isInPlace ? true : try existing.isIdentical(to: source)
            report.replaced = try fresh.replace(
                existing, last: existing.isClean(loaded, upTo: reach.lastFrame) ? reach.lastFrame : nil,
                codec: loaded.codec, keepingAside: !isSame)
        } else {
            try fresh.takeName()
        }
        defer { fresh.file.unlock() }
        try fresh.settle()
        if case .overtaken = anchor.advance(to: state, after: expected) {
            throw .file(.outcomeUnknown, .ancestry(.tookPlace))
        }
        try rememberPlace()
        return report
    }

    /// Returns the note that not all items can be read here: worth knowing before the other device is given
    /// away.
    private static func notes(ofForeign items: Int) -> [String] {
        guard items > 0 else { return [] }
        let those = items == 1 ? "1 item" : "\(items) items"
        return [
            "\(those) cannot be read on this device: stored for another device only, or with another state directory "
                + "than the given one"
        ]
    }

    /// Returns the notes that other slots open the vault from now on, or that it has other devices.
    private func notes(
        of loaded: CheckedCopy, replacing existing: ExistingFile?, _ anchored: AnchorSlot?, hasKnownKeys: Bool
    ) -> [String] {
        let (former, keybag) = (existing?.keybag, loaded.keybag)
        let isOlder = (anchored?.keybagGeneration ?? 0) > keybag.generation
        var notes: [String] = []
        if !hasKnownKeys || former.map({ $0.slots != keybag.slots }) ?? isOlder {
            notes.append(
                "the slots are those of the copy; slots that were changed or removed since open the vault again"
            )
        }
        if former.map({ $0.sets.map(\.device) != keybag.sets.map(\.device) }) ?? isOlder {
            notes.append("the devices are those of the copy; \"vaultctl device list\" shows them")
        }
        return notes
    }

    /// Throws `outcomeUnknown` when the restoration is to decide which file is the vault, and this device
    /// cannot record that.
    private func rememberPlace() throws(TokenStorageError) {
        guard let state = place.state, let here = place.absolutePath else { return }
        do throws(TokenStorageError) {
            try StateStore(directory: state, vault: copy.vault).rememberPlace(here)
            // The vaults expected here so far are expected nowhere until they are opened again.
            let paths = [here, place.linkedPath].compactMap { $0 }
            for other in StateStore.vaults(rememberedAt: paths, in: state) where other != copy.vault {
                try StateStore(directory: state, vault: other).forgetPlace()
            }
        } catch {
            guard isAdopting else { return }
            throw .file(.outcomeUnknown, .placeNotRemembered(error.reason))
        }
    }
}
