internal import SystemPackage
package import TokenVaultPlatform

/// Where a vault lives: the real disk, or a simulated one.
package struct VaultLocation: Sendable {
    /// The directory of the vault file.
    package let directory: any DiskDirectory
    /// The vault file's name in it.
    package let name: String
    /// The directory of the device key and the anchor; `nil` for none.
    package let state: (any DiskDirectory)?
    /// The vault's path, for messages.
    package let path: FilePath
    /// The path without links, from the root; `nil` on a disk that has none.
    package let absolutePath: FilePath?
    /// Why nothing is written there; `nil` when it may be.
    package var obstacle: WritingObstacle?

    package init(
        directory: any DiskDirectory, name: String, state: (any DiskDirectory)?, path: FilePath,
        absolutePath: FilePath? = nil
    ) {
        self.absolutePath = absolutePath
        self.directory = directory
        self.name = name
        self.state = state
        self.path = path
    }

    /// The same place, and nothing that this device keeps for the vault.
    func withoutState() -> VaultLocation {
        VaultLocation(directory: directory, name: name, state: nil, path: path, absolutePath: absolutePath)
    }

    /// The place of the vault at `path` on the real disk, with the state directory of `configuration`.
    /// `creating` makes missing directories; otherwise a state directory that is not there is none.
    static func real(
        _ path: FilePath, configuration: FileVaultConfiguration, creating: Bool
    ) throws(TokenStorageError) -> VaultLocation {
        guard let name = path.lastComponent?.string, path.lastComponent?.kind == .regular,
            name.utf8.count <= 200
        else {
            throw .file(.invalidArgument, advice: "the path of a vault ends in a name of at most 200 bytes")
        }
        // The vault beside it makes and removes files of such names.
        guard !name.hasSuffix(".torn"), !(name.hasPrefix(".") && name.hasSuffix(".new")) else {
            throw .file(.invalidArgument, advice: "a vault is not named .….new or ….torn")
        }
        var parent = path.removingLastComponent()
        if parent.isEmpty { parent = "." }
        let state = configuration.stateDirectory
        let location: VaultLocation
        let own: FileAttributes?
        do {
            if creating {
                try PosixDirectory.makeAll(parent)
                if let state { try PosixDirectory.makeAll(state) }
            }
            let directory = try PosixDirectory(parent)
            let stateDirectory =
                creating
                ? try state.map { (path) throws(SystemFailure) in try PosixDirectory(path) }
                : try existing(state)
            location = VaultLocation(
                directory: directory, name: name, state: stateDirectory, path: path,
                absolutePath: directory.absolutePath?.appending(name))
            own = try stateDirectory?.attributes(of: ".")
        } catch {
            if error.errno == .noSuchFileOrDirectory {
                throw .file(
                    .unavailable, underlying: "no such directory",
                    advice: "create the vault first, or check the path")
            }
            throw .system(error)
        }
        // Whoever may rename in it takes the anchor away, and an older copy of the vault goes unseen.
        if let own, own.owner != ProcessFacts.user || own.mode & 0o022 != 0 {
            throw .file(
                .insecurePermissions, underlying: "the state directory",
                advice: "make the state directory yours alone: chmod 700 on it")
        }
        return location
    }

    /// Whether who reads has to take the lock as well: other machines may write.
    var locksReaders: Bool { directory.isRemote && obstacle == nil }

    /// The state directory; `nil` when it is not there or may not be looked into. That the system has no
    /// descriptor left says neither.
    private static func existing(_ path: FilePath?) throws(SystemFailure) -> PosixDirectory? {
        guard let path else { return nil }
        do {
            return try PosixDirectory(path)
        } catch {
            if error.isExhaustion { throw error }
            return nil
        }
    }
}
