internal import Synchronization
public import SystemPackage
internal import TokenVaultPlatform

// One vault, one path: what is at another is a copy.
extension BlockingFileVault {
    /// What a look at the path that this device remembers told.
    enum PlaceFinding {
        /// It is this file, by this or another name.
        case here
        /// Nothing is remembered.
        case unknown
        /// This vault is nowhere else by now: it was moved.
        case moved
        /// It is alive there.
        case elsewhere(FilePath)
    }

    /// Throws `unavailable` when nothing is at `path` but this device knows that a vault was.
    package static func requireUnknown(
        at path: FilePath, configuration: FileVaultConfiguration
    ) throws(TokenStorageError) {
        guard let state = try? VaultLocation.existing(configuration.stateDirectory),
            let isThere = try? SmallFile.exists(path), !isThere
        else { return }
        let lost = MissingVaults(state: state, place: VaultLocation.expectedPath(path))
        if !lost.identifiers.isEmpty { throw .vaultIsGone(at: path).during("open") }
    }

    /// Whether this device remembers a vault at `path` that ``forget(at:configuration:keyring:)`` may forget.
    package static func remembersVault(at path: FilePath, configuration: FileVaultConfiguration) -> Bool {
        guard let state = try? VaultLocation.existing(configuration.stateDirectory) else { return false }
        return !MissingVaults(state: state, place: VaultLocation.expectedPath(path)).identifiers.isEmpty
    }

    /// Forgets a vault whose file is gone: removes its device key, its anchor and its path from the state directory, and
    /// its key from `keyring`. Only then can another vault be made at `path`.
    ///
    /// Should the file turn up again, its items of the this-device-only policies cannot be read by anybody, and an
    /// older copy of it is not told from a newer one. Another vault may be at `path`: then this device expects that one from now
    /// on. Throws `alreadyExists` when the vault that this device expects is at `path`, or what is no vault, `unavailable` when this device knows no vault that was there, and what the system failed with: the vault is
    /// known then, and can be forgotten again. What `keyring` throws comes when the vault is forgotten already.
    public static func forget(
        at path: FilePath, configuration: FileVaultConfiguration, keyring: (any KeyringItems)? = nil
    ) throws(TokenStorageError) {
        try during("forget") { () throws(TokenStorageError) in
            if configuration.isReadOnly { throw ReadOnlyReason.requested.error }
            let state = try onDisk { () throws(SystemFailure) in
                try VaultLocation.existing(configuration.stateDirectory)
            }
            let there = try onDisk { () throws(SystemFailure) in try SmallFile.exists(path) }
            let lost = MissingVaults(state: state, place: VaultLocation.expectedPath(path))
            let occupant = there ? try vaults(at: path, configuration) : nil
            for vault in try lost.forget(among: occupant) {
                guard let keyring else { continue }
                try clear(keyring, of: vault, isForgotten: true)
            }
        }
    }

    /// The vaults that the file at `path` may be; none for what is no vault.
    private static func vaults(
        at path: FilePath, _ configuration: FileVaultConfiguration
    ) throws(TokenStorageError) -> [VaultIdentifier] {
        let location = try VaultLocation.real(path, configuration: configuration, creating: false)
        guard let opened = try? VaultFile.open(location, for: .use) else { return [] }
        return try opened.keybags.vaults
    }

    /// Looks at the path that this device remembers: one small file is read, and where it names another path, the
    /// file there.
    func findPlace() throws(TokenStorageError) -> PlaceFinding {
        guard let store = secretStore else { return .here }
        return try findPlace(store, rememberedAt: try store.place())
    }

    private func findPlace(
        _ store: StateStore, rememberedAt place: FilePath?
    ) throws(TokenStorageError) -> PlaceFinding {
        guard let here = location.absolutePath else { return .here }
        guard let place else { return .unknown }
        if place == here { return .here }
        let own = try? location.directory.attributes(of: location.name)
        if let other = try VaultPlaces.living(store, here: here, identity: own?.identity, vault: store.vault)
        {
            return .elsewhere(other.path)
        }
        return VaultPlaces.isSame(place, own?.identity) ? .here : .moved
    }

    /// Throws `unexpectedVault` when this device remembers another vault at the path, `insecurePermissions` when other users may
    /// put one there, `duplicateVault` when this is a copy of a vault that is elsewhere, unless it may be read as one.
    func checkPlace() throws(TokenStorageError) -> PlaceFinding {
        try location.requireTrustedDirectory()
        guard let store = secretStore else { return .here }
        let place = try store.place()
        try VaultPlaces.requireExpected(store, rememberedAt: place, at: location.absolutePath)
        let finding = try findPlace(store, rememberedAt: place)
        if case .elsewhere(let path) = finding, !configuration.allowsOpeningCopies { throw .duplicate(path) }
        return finding
    }

    /// What a person should know of where this file is.
    func notesOfPlace() -> [String] {
        (location.note.map { [$0] } ?? []) + notesOfCopy()
    }

    private func notesOfCopy() -> [String] {
        guard case .elsewhere(let path)? = try? findPlace() else { return [] }
        return ["this is a copy: the vault is \(path.string)"]
    }

    /// Remembers the path of a vault that was moved, and of one that this device has seen and no path of; `finding` is what it
    /// was before.
    func rememberMove(after finding: PlaceFinding) {
        switch finding {
        case .here, .elsewhere: return
        case .moved, .unknown: break
        }
        guard let here = location.absolutePath, let store = secretStore else { return }
        // Another process may have remembered it meanwhile.
        switch try? findPlace() {
        case .here, .elsewhere, nil: return
        case .moved: try? store.rememberPlace(here)
        case .unknown:
            guard let anchor = try? store.directory.attributes(of: Anchor.name(of: store.vault)),
                anchor.size > 0
            else { return }
            try? store.rememberPlace(here)
        }
    }
}
