internal import SystemPackage
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Puts a copy in a vault's place: a new file with the copy's items, in a new life of the log.
struct VaultRestoration {
    let copy: VaultCopy
    let place: VaultLocation
    /// Whether this settles which of two files is the vault.
    let isAdopting: Bool
    let progress: ((Int, Int) -> Void)?

    func run() throws(TokenStorageError) -> RestoreReport {
        let deadline = Deadline(after: copy.configuration.lockTimeout)
        while true {
            let occupant = try PlaceOccupant(of: place)
            if let occupant {
                try WriterLock(file: occupant.file).take(.exclusive, until: deadline)
            }
            defer { occupant?.file.unlock() }
            guard try isStillThere(occupant) else {
                if deadline.hasPassed { throw .file(.timedOut) }
                continue
            }
            return try restore(over: occupant, until: deadline)
        }
    }

    /// Whether the path still leads to what was locked.
    private func isStillThere(_ occupant: PlaceOccupant?) throws(TokenStorageError) -> Bool {
        let place = place
        let there = try onDisk { () throws(SystemFailure) in
            try place.directory.attributes(of: place.name)
        }
        return there?.identity == occupant?.identity
    }

    /// Puts the copy over `occupant`, whose lock the caller holds.
    private func restore(
        over occupant: PlaceOccupant?, until deadline: Deadline
    ) throws(TokenStorageError) -> RestoreReport {
        try occupant?.check(is: copy.vault)
        let identity = try onDisk { () throws(SystemFailure) in try copy.file.attributes().identity }
        let isInPlace = occupant?.identity == identity
        let source = isInPlace ? occupant?.file ?? copy.file : copy.file
        if !isInPlace { try copy.lockForReading(source, until: deadline) }
        defer { if !isInPlace { source.unlock() } }

        let loaded = try CheckedCopy(copy, file: source, progress: progress)
        defer { loaded.wipe() }
        let other = try otherFile(beside: occupant)
        var reach = LogReach()
        reach.include(loaded.state)
        if let other { try? reach.include(other.file, loaded.codec) }
        let anchor = Anchor(directory: place.state, vault: copy.vault, key: loaded.codec.keys.anchor)
        if let slot = try anchor.read() { reach.include(slot) }
        if let occupant { try reach.include(occupant.file, loaded.codec) }
        let life = try reach.next()

        var keybag = loaded.keybag
        keybag.generation = life.keybag
        try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
            try KeybagKeys.sign(&keybag, roots: loaded.roots)
        }
        guard let bytes = keybag.encoded() else { throw .file(.internalError) }
        let fresh = try FreshFile(in: place, isAlone: occupant == nil)
        let state: LogState
        do throws(TokenStorageError) {
            state = try loaded.write(
                to: fresh.file, keybag: bytes, generation: keybag.generation, epoch: life.epoch,
                sequence: life.sequence, tailBound: copy.configuration.tailBound, progress: progress)
        } catch {
            fresh.remove()
            throw error
        }
        var report = RestoreReport(
            items: try state.index.figures().items, replaced: nil, staleCopy: other?.path,
            notes: loaded.notes + notes(replacing: occupant, by: keybag))
        if let occupant {
            let isSame = isInPlace ? true : try occupant.isIdentical(to: source)
            report.replaced = try fresh.replace(
                occupant, last: reach.lastFrame, codec: loaded.codec, keepingAside: !isSame)
        } else {
            try fresh.takeName()
        }
        defer { fresh.file.unlock() }
        try fresh.settle()
        anchor.advance(
            epoch: state.epoch, sequence: state.sequence, head: state.chain,
            keybagGeneration: state.keybag.generation)
        rememberPlace()
        return report
    }

    /// The same vault at another path that this device knows. Throws `duplicateVault` unless this is to settle that.
    private func otherFile(
        beside occupant: PlaceOccupant?
    ) throws(TokenStorageError) -> (path: FilePath, file: any DiskFile)? {
        guard let state = place.state, let here = place.absolutePath else { return nil }
        let store = StateStore(directory: state, vault: copy.vault)
        guard
            let other = VaultPlaces.living(
                store, here: here, identity: occupant?.identity, vault: copy.vault)
        else { return nil }
        guard isAdopting else { throw .duplicate(other.path) }
        return other
    }

    /// That other slots open the vault from now on is worth knowing.
    private func notes(replacing occupant: PlaceOccupant?, by keybag: Keybag) -> [String] {
        guard let occupant, let whole = try? KeybagCopies(reading: occupant.file).whole.first,
            whole.keybag.slots != keybag.slots
        else { return [] }
        return [
            "the unlock methods are those of the copy; what was changed or removed since opens the vault again"
        ]
    }

    private func rememberPlace() {
        guard let state = place.state, let here = place.absolutePath else { return }
        try? StateStore(directory: state, vault: copy.vault).rememberPlace(here)
    }
}
