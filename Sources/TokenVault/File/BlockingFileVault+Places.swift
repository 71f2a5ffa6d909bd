internal import Synchronization
internal import SystemPackage
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
        do throws(TokenStorageError) {
            _ = try open(at: path, configuration: configuration)
        } catch {
            if error == .vaultIsGone.during("open") { throw error }
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
