internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Makes a vault: the file is written and synced under another name first, so that it appears whole or not at
/// all.
struct VaultCreation {
    let location: VaultLocation
    let configuration: FileVaultConfiguration
    /// The new vault's identifier.
    let vault = VaultIdentifier(bytes: Random.bytes(VaultIdentifier.length))

    /// Creates the file with `method` as its first slot; returns its keybag and the keys that it gives.
    func create(with method: UnlockMethod) throws(TokenStorageError) -> (keybag: Keybag, ring: KeyRing) {
        try method.checkAsNew()
        let cost = try configuration.keyDerivationCost.checked()
        try location.requireTrustedDirectory()
        try refuseExistingOrGone()
        let (location, vault) = (location, vault)
        let store = location.state.map { StateStore(directory: $0, vault: vault) }
        do throws(TokenStorageError) {
            var secrets = KeybagKeys.DeviceSecrets()
            if let store {
                secrets.device = try store.makeDevice()
                if method.isPassphrase { secrets.pepper = try store.makePepper() }
            }
            let (keybag, ring) = try KeybagKeys.translating { () throws(KeybagKeys.Failure) in
                try KeybagKeys.make(
                    vault: vault, method: method, cost: cost, created: configuration.clock(),
                    secrets: secrets, within: configuration.derivationLimit)
            }
            do throws(TokenStorageError) {
                if let store, let place = location.absolutePath { try store.rememberPlace(place) }
                try write(keybag, ring: ring)
            } catch {
                ring.wipeEverything()
                throw error
            }
            return (keybag, ring)
        } catch {
            try? store?.removeAll()
            throw error
        }
    }

    /// Throws `alreadyExists` when something is in the vault's place. Throws `unavailable` when this device
    /// knows a vault there whose file is gone: if it came back, there would be two vaults.
    func refuseExistingOrGone() throws(TokenStorageError) {
        try refuseExisting()
        if location.isOfVaultThatIsGone { throw .vaultIsGone(at: location.path) }
    }

    /// Throws `alreadyExists` when something is in the vault's place.
    func refuseExisting() throws(TokenStorageError) {
        let location = location
        let existing = try onDisk { () throws(SystemFailure) in
            try location.directory.attributes(of: location.name)
        }
        guard existing == nil else {
            throw .file(.alreadyExists, .exists(.vaultFile))
        }
    }

    private func write(_ keybag: Keybag, ring: KeyRing) throws(TokenStorageError) {
        guard let copy = keybag.encoded() else { throw .file(.internalError) }
        let codec = FrameCodec(vault: keybag.vault, keys: ring.log)
        let (directory, name) = (location.directory, location.name)
        UnfinishedFiles(directory: directory, kind: .vault(name)).removeLeftOver()
        let unfinished = try UnfinishedFile(in: directory) { ".\(name).\(Random.bytes(16).hexadecimal)" }
        var hasName = false
        do throws(TokenStorageError) {
            var builder = try LogBuilder(
                file: unfinished.file, codec: codec, tailBound: configuration.tailBound,
                epoch: Epoch(number: 1, identifier: .random()),
                baseSequence: 0, keybagCopy: copy,
                keybag: KeybagRecord(generation: keybag.generation, digest: Keybag.digest(of: copy)),
                ancestry: Ancestry())
            let state = try builder.finish()
            try onDisk { () throws(SystemFailure) in
                try unfinished.file.synchronize()
                try unfinished.takeName(name)
                hasName = true
                try directory.synchronize()
            }
            let anchor = Anchor(directory: location.state, vault: keybag.vault, key: ring.log.anchor)
            anchor.use(ring.facts.succession, of: state.keybag)
            anchor.advance(to: state, after: nil)
        } catch {
            // The device key goes as well: the file would be a vault that cannot keep its items.
            if hasName { try? directory.remove(name) } else { unfinished.remove() }
            throw error
        }
    }
}

/// Removes a vault and this device's state for it.
struct VaultRemoval {
    let location: VaultLocation
    let lockTimeout: LockTimeout

    /// Removes the vault. The keys on this device go first: from then on this-device-only items cannot be
    /// read, even if the rest is interrupted. Returns the vault's identifier, unless it was a copy of a vault
    /// that is elsewhere or not known.
    func remove() throws(TokenStorageError) -> VaultIdentifier? {
        let location = location
        var removed: VaultIdentifier?
        let file = try VaultFile.open(location, for: .use).file
        try WriterLock(file: file).take(.exclusive, until: Deadline(after: lockTimeout))
        defer { file.unlock() }
        let vaults = try identifiers(in: file)
        let stores = vaults.compactMap { vault in
            location.state.map { StateStore(directory: $0, vault: vault) }
        }
        for store in stores {
            try VaultPlaces.requireExpected(store, rememberedAt: store.place(), at: location)
        }
        var own: [StateStore] = []
        for store in stores where try !VaultPlaces.isCopy(at: location.absolutePath, store) {
            own.append(store)
        }
        // Under another name, the file's contents would remain. Removing a copy's name is always allowed.
        if own.count == stores.count { try HardLinks(location: location).requireNone(of: file) }
        // Without the keys, only the file would be left, and it could not be removed.
        guard !location.directory.isMountPoint(location.name) else {
            throw .system(SystemFailure(.resourceBusy, "unlinkat"))
        }
        for store in own {
            try store.removeAll()
            removed = store.vault
        }
        let kept = removed.map { ConflictCopies(location: location, vault: $0).namesLeftBehind() } ?? []
        try onDisk { () throws(SystemFailure) in
            for name in kept { try location.directory.remove(name) }
            UnfinishedFiles(directory: location.directory, kind: .vault(location.name)).removeLeftOver()
            try location.directory.remove(location.name)
            for name in [VaultLog.temporaryName(for: location.name), location.name + ".torn"] {
                if try location.directory.attributes(of: name) != nil { try location.directory.remove(name) }
            }
            try location.directory.synchronize()
        }
        return removed
    }

    /// Returns the vault's identifier, from a whole copy of the keybag. Without a whole copy, returns the identifier in
    /// a damaged copy where this device remembers that vault there. A damaged vault can be removed; a file that is no
    /// vault is left alone.
    private func identifiers(in file: any DiskFile) throws(TokenStorageError) -> [VaultIdentifier] {
        do {
            return Array(try KeybagCopies(reading: file).vaults.prefix(1))
        } catch {
            guard error.code == .corrupt || error.code == .unsupportedFormat else { throw error }
            let claimed = KeybagCopies.claimedVaults(front: try KeybagCopies.front(of: file))
            let paths = [location.absolutePath, location.linkedPath].compactMap { $0 }
            let known = location.state.map { StateStore.vaults(rememberedAt: paths, in: $0) } ?? []
            return Array(claimed.filter(known.contains).prefix(1))
        }
    }
}

extension UnlockMethod {
    /// The length of the key that a keyring keeps for a vault.
    static let keyringKeyLength = 32

    /// Throws `invalidArgument` for an invalid passphrase, key file or keyring's key.
    func check() throws(TokenStorageError) {
        switch self {
        case .passphrase(let passphrase):
            guard (1...Secret.maximumLength).contains(passphrase.count) else {
                throw .file(.invalidArgument, .limit(.passphrase))
            }
        case .keyFile(let contents):
            guard (32...4_096).contains(contents.count) else {
                throw .file(.invalidArgument, .limit(.keyFile))
            }
        case .secretService(let key):
            guard key.count == Self.keyringKeyLength else {
                throw .file(.invalidArgument, .limit(.keyringKey))
            }
        case .recoveryKey: break
        }
    }

    /// Throws `invalidArgument` as ``check()``, and for a new passphrase that a vault with a recovery key
    /// would take for a mistyped one.
    func checkAsNew() throws(TokenStorageError) {
        try check()
        if case .passphrase(let passphrase) = self, case .mistyped = RecoveryKey.read(passphrase.spellings[0])
        {
            throw .file(.invalidArgument, .limit(.passphraseLikeRecoveryKey))
        }
    }
}

extension KeyDerivationCost {
    /// Returns the cost for the keybag. Throws `invalidArgument` outside its bounds.
    func checked() throws(TokenStorageError) -> PasswordHashCost {
        let (least, most) = (PasswordHashCost.minimum, PasswordHashCost.maximum)
        guard passes >= Int(least.passes), passes <= Int(most.passes), memory >= Int(least.memory),
            memory <= Int(most.memory)
        else {
            throw .file(.invalidArgument, .limit(.cost))
        }
        return PasswordHashCost(passes: UInt32(passes), memory: UInt64(memory))
    }
}
