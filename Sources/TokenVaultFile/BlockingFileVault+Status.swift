internal import Synchronization
public import TokenVaultCore
internal import TokenVaultPlatform

extension BlockingFileVault {
    /// Returns the vault's status. Before the first unlock, little is known. Throws `closed`, `corrupt`, and
    /// the system's failures.
    public func status() throws(TokenStorageError) -> VaultStatus {
        try during("status") { () throws(TokenStorageError) in
            try checkUsable()
            let (session, known, notes) = state.withLock { ($0.session, $0.keybag, $0.notes) }
            let keybag = try newestKeybag(session, known)
            let lockState = try lockState()
            var status = VaultStatus(
                state: lockState, items: nil, fileSize: 0, reclaimable: nil, rollbackProtection: .none,
                device: nil, slots: keybag.slots.map { VaultSlot($0) }, unlockedBy: nil,
                keyMemory: KeyMemory.protection, readOnlyReason: location.readOnlyReason, notes: notes)
            status.keptValues = Int(keybag.keptValues)
            let copies = ConflictCopies(location: location, vault: keybag.vault)
            status.conflictingCopies = copies.names()
            for name in copies.namesOfReplaced(orItself: false).sorted() {
                status.notes.append(
                    "\(name) is a previous file of the vault, which the unlock methods of that time open: remove it when you do not need it"
                )
            }
            status.notes += notesOfPlace()
            status.notes += UnfinishedFiles.notes(beside: location)
            if let obstacle = location.readOnlyReason { status.notes.append(obstacle.note) }
            if location.locksReaders { status.notes.append(Self.noteOnRemoteFiles) }
            guard let session else {
                let opened = try VaultFile.open(location, for: .use)
                status.fileSize = opened.attributes.size
                status.note(HardLinks(location: location).note(of: opened.file))
                return status
            }
            status.note(HardLinks(location: location).note(of: session.log.state.withLock { $0.file }))
            let figures = try session.log.figures()
            status.fileSize = figures.size
            let isChecked = session.log.isChecked(session.log.keybagRecord)
            if isChecked {
                status.items = figures.items
                status.reclaimable = figures.reclaimable
            } else {
                status.notes.append("the keys of the vault were replaced meanwhile: unlock it again")
            }
            status.rollbackProtection = figures.anchored ? .anchored : .none
            status.device = session.ring.facts.isEnrolled ? .enrolled : .notEnrolled
            let slot = Int(session.ring.facts.slot)
            status.unlockedBy = status.slots.first { $0.id == slot }
            status.note(hasStuckAnchor ? Self.noteOnStuckAnchor : nil)
            status.note(session.log.compactionPutOff.withLock { $0 })
            status.note(session.log.indexPutOff.withLock { $0 })
            if session.log.hasMetDamagedIndex.withLock({ $0 }) {
                status.notes.append(
                    "the index is damaged and was not used; the next write replaces it, and verify shows more"
                )
            }
            status.note(location.readOnlyReason == nil ? Self.noteOnEarlierKeys(session, keybag) : nil)
            if keybag.hasSeveralVersions, isChecked, try itemsUnderOlderKeys(session) > 0 {
                status.notes.append(
                    "items from before a key rotation are still under the old keys: compact the vault")
            }
            // Damage in the history hides nothing else: verify reports the damage.
            status.note((try? session.log.valuesLeftInCopies()).flatMap { Self.note(onLeftValues: $0) })
            if session.log.hasCutTail.withLock({ $0 }) {
                status.notes.append(
                    "the bytes that a crash left behind the log were removed; "
                        + "\(TornTail.name(for: location.name)) keeps them until the next compaction or deletion"
                )
            }
            return status
        }
    }

    /// Returns the note that this device's set is not renewed since a key rotation; `nil` where this session cannot
    /// renew it anyway.
    private static func noteOnEarlierKeys(_ session: VaultSession, _ keybag: Keybag) -> String? {
        let own = keybag.sets.first { DeviceKey.setTag(of: $0.device) == session.ring.facts.deviceTag }
        guard let own, own.olderRoots != nil, session.ring.roots?.all != nil else { return nil }
        return "this device stores this-device-only items under its keys from before a key rotation: "
            + (own.keys.contains(where: \.isPasscodeClass)
                ? "unlock the vault with the passphrase" : "compact the vault, then unlock it again")
    }

    private static func note(onLeftValues count: Int) -> String? {
        guard count > 0 else { return nil }
        let values = count == 1 ? "1 value" : "\(count) values"
        return "\(values) stayed in the merged files: "
            + "merge those files on the devices of these items too"
    }

    private static let noteOnRemoteFiles =
        "the vault is on a network file system or FUSE: its safety depends on the locks there, and reads wait for writers"

    /// The repairs that unlocking made or could not make, in words for the user; part of
    /// ``VaultStatus/notes``.
    package var unlockWarnings: [String] {
        isInherited
            ? [] : state.withLock { $0.notes } + (hasStuckAnchor ? [Self.noteOnStuckAnchor] : [])
    }

    /// Whether this device cannot record what it sees of the vault.
    private var hasStuckAnchor: Bool {
        location.readOnlyReason == nil && state.withLock { $0.session }?.log.anchor.isStuck == true
    }

    static let noteOnStuckAnchor =
        "the anchor in the state directory cannot be written: older copies of this vault are not noticed"

    /// Returns the unlock methods, in the order they were added. Before the first unlock, they come from the
    /// unauthenticated keybag as the vault was opened, and nothing is read. Throws `closed`, and from the
    /// first unlock on as ``status()``.
    public func slots() throws(TokenStorageError) -> [VaultSlot] {
        try during("status") { () throws(TokenStorageError) in
            try checkUsable()
            let (session, known) = state.withLock { ($0.session, $0.keybag) }
            return try newestKeybag(session, known).slots.map { VaultSlot($0) }
        }
    }

    /// Returns the keybag in use, with the changes of other processes since `known`; `known` itself without a
    /// session.
    private func newestKeybag(
        _ session: VaultSession?, _ known: Keybag
    ) throws(TokenStorageError) -> Keybag {
        guard let session else { return known }
        try session.log.lookAtOthers()
        guard try session.followKeybag(), session.log.keybagRecord.generation != known.generation else {
            return known
        }
        let newer = try currentKeybag(session)
        state.withLock { if $0.keybag.generation == known.generation { $0.keybag = newer } }
        return newer
    }
}
