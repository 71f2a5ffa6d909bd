internal import Synchronization
public import SystemPackage
public import TokenVaultCore
internal import TokenVaultPlatform

// One vault has one path: the same vault at another path is a copy.
extension BlockingFileVault {
    /// The finding of a look at the path that this device remembers.
    enum PlaceFinding {
        /// This file is at the remembered path, by this or another name.
        case here
        /// This device remembers no path.
        case unknown
        /// The vault is at no other path by now: it was moved.
        case moved
        /// The vault itself is at the remembered path.
        case elsewhere(FilePath)
    }

    /// Throws `unavailable` when nothing is at `path` but this device remembers a vault there.
    package static func requireUnknown(
        at path: FilePath, configuration: FileVaultConfiguration
    ) throws(TokenStorageError) {
        guard let state = try? VaultLocation.existing(configuration.stateDirectory),
            let isThere = try? SmallFile.exists(path), !isThere
        else { return }
        let lost = MissingVaults(state: state, place: VaultLocation.expectedPath(path))
        if !lost.identifiers.isEmpty { throw .vaultIsGone(at: path).during("open") }
    }

    /// Returns whether this device remembers a vault at `path` that ``forget(at:configuration:keyring:)`` may
    /// forget.
    package static func remembersVault(at path: FilePath, configuration: FileVaultConfiguration) -> Bool {
        guard let state = try? VaultLocation.existing(configuration.stateDirectory) else { return false }
        return !MissingVaults(state: state, place: VaultLocation.expectedPath(path)).identifiers.isEmpty
    }

    /// Forgets a vault whose file is gone. Removes its device key, its anchor and its path from the state
    /// directory, and its key from `keyring`. Only then can another vault be made at `path`.
    ///
    /// If the file appears again, its items of the this-device-only policies cannot be read, and an older
    /// copy of it is not noticed. Another vault may be at `path`: then this device expects that vault from
    /// now on.
    ///
    /// Throws `alreadyExists` when the vault that this device expects, or a file that is no vault, is at
    /// `path`. Throws `unavailable` when this device knows no vault that was there. After a failure of the
    /// system the vault is still known, and can be forgotten again. Errors of `keyring` come when the vault
    /// is forgotten already.
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

    /// Returns the vaults that the file at `path` may be; none for a file that is no vault.
    private static func vaults(
        at path: FilePath, _ configuration: FileVaultConfiguration
    ) throws(TokenStorageError) -> [VaultIdentifier] {
        let location = try VaultLocation.real(path, configuration: configuration, creating: false)
        guard let opened = try? VaultFile.open(location, for: .use) else { return [] }
        return try opened.keybags.vaults
    }

    /// Looks at the path that this device remembers. Reads one small file and, where that names another path,
    /// the file there.
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

    /// Throws `unexpectedVault` when this device remembers another vault at the path, and
    /// `insecurePermissions` when other users may put one there. Throws `duplicateVault` when this is a copy
    /// of a vault that is elsewhere, unless copies may be read.
    func checkPlace() throws(TokenStorageError) -> PlaceFinding {
        try location.requireTrustedDirectory()
        guard let store = secretStore else { return .here }
        let place = try store.place()
        try VaultPlaces.requireExpected(store, rememberedAt: place, at: location)
        let finding = try findPlace(store, rememberedAt: place)
        if case .elsewhere(let path) = finding, !configuration.allowsOpeningCopies { throw .duplicate(path) }
        return finding
    }

    /// Throws the errors that an unlock throws about the place of this file. For callers whose vault another
    /// process unlocks.
    package func requireExpectedPlace() throws(TokenStorageError) {
        try during("unlock") { () throws(TokenStorageError) in _ = try checkPlace() }
    }

    /// Returns the notes for the user about the place of this file.
    func notesOfPlace() -> [String] {
        (location.note.map { [$0] } ?? []) + notesOfCopy()
    }

    private func notesOfCopy() -> [String] {
        guard case .elsewhere(let path)? = try? findPlace() else { return [] }
        return ["this is a copy: the vault is \(path.string)"]
    }

    /// Remembers the path of a vault that was moved, or whose path this device does not know yet. `finding`
    /// is the result of the look before.
    func rememberMove(after finding: PlaceFinding) {
        switch finding {
        case .here, .elsewhere: return
        case .moved, .unknown: break
        }
        guard let here = location.absolutePath, let store = secretStore else { return }
        // Another process may have remembered the place meanwhile.
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
