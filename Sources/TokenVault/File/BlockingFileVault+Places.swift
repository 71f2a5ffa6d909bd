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
        let lost = LostVaults(state: state, place: VaultLocation.expectedPath(path))
        if !lost.identifiers.isEmpty { throw .vaultIsGone(at: path).during("open") }
    }

    /// Forgets a vault whose file is gone: removes its device key, its anchor and its path from the state directory, and
    /// its key from `keyring`. Only then can another vault be made at `path`.
    ///
    /// Should the file turn up again, its items of the this-device-only policies cannot be read by anybody, and an
    /// older copy of it is not told from a newer one. Throws `alreadyExists` when something is at `path`,
    /// `unavailable` when this device knows no vault that was there, and what the system failed with: the vault is
    /// known then, and can be forgotten again. What `keyring` throws comes when the vault is forgotten already.
    public static func forget(
        at path: FilePath, configuration: FileVaultConfiguration, keyring: (any KeyringItems)? = nil
    ) throws(TokenStorageError) {
        try during("forget") { () throws(TokenStorageError) in
            if configuration.isReadOnly { throw WritingObstacle.asked.error }
            let state = try onDisk { () throws(SystemFailure) in
                try VaultLocation.existing(configuration.stateDirectory)
            }
            let there = try onDisk { () throws(SystemFailure) in try SmallFile.exists(path) }
            let lost = LostVaults(state: state, place: VaultLocation.expectedPath(path))
            for vault in try lost.forget(isThere: there) {
                guard let keyring else { continue }
                try clear(keyring, of: vault, "the vault is forgotten; its key is left in the keyring")
            }
        }
    }

    /// Looks at the path that this device remembers: one small file is read, and where it names another path, the
    /// file there.
    func findPlace() throws(TokenStorageError) -> PlaceFinding {
        guard let store = secretStore, let here = location.absolutePath else { return .here }
        guard let place = try store.place() else { return .unknown }
        if place == here { return .here }
        let own = try? location.directory.attributes(of: location.name)
        if let other = try VaultPlaces.living(store, here: here, identity: own?.identity, vault: store.vault)
        {
            return .elsewhere(other.path)
        }
        return VaultPlaces.isSame(place, own?.identity) ? .here : .moved
    }

    /// Throws `duplicateVault` when this is a copy of a vault that is elsewhere; says whether it may be read as such.
    func checkPlace() throws(TokenStorageError) -> Bool {
        guard case .elsewhere(let path) = try findPlace() else { return false }
        guard configuration.opensCopies else { throw .duplicate(path) }
        return true
    }

    /// What a person should know of where this file is.
    func notesOfPlace() -> [String] {
        guard case .elsewhere(let path)? = try? findPlace() else { return [] }
        return ["this is a copy: the vault is \(path.string)"]
    }

    /// Remembers the path of a vault that was moved, and of one that this device has seen and no path of.
    func rememberMove() {
        guard let here = location.absolutePath, let store = secretStore else { return }
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
