package import SystemPackage
package import TokenVaultCore
package import TokenVaultPlatform

/// The place of a vault, on the real disk or a simulated one.
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
    /// The path as given, from the root, where a link leads elsewhere than this device may remember.
    private(set) var linkedPath: FilePath?
    /// The directory of the path without links.
    private let absoluteParent: FilePath?
    /// The reason that nothing is written there; `nil` when writing is allowed.
    package var readOnlyReason: ReadOnlyReason?
    /// The users with permission to replace files in the vault's directory.
    private var access = DirectoryAccess.owner

    package init(
        directory: any DiskDirectory, name: String, state: (any DiskDirectory)?, path: FilePath,
        absolutePath: FilePath? = nil
    ) {
        self.absolutePath = absolutePath
        absoluteParent = absolutePath?.parent
        self.directory = directory
        self.name = name
        self.state = state
        self.path = path
    }

    /// Throws `unavailable` when the vault's directory was moved away, and perhaps replaced by another.
    /// Writes to the open file would not reach the vault at the path.
    func requireDirectory() throws(TokenStorageError) {
        guard let absoluteParent, directory.isReplaced(at: absoluteParent) else { return }
        throw .file(.unavailable, .missing(.vaultDirectory))
    }

    /// Throws `insecurePermissions` when other users may put another file in the vault's place.
    func requireTrustedDirectory() throws(TokenStorageError) {
        let directory = absoluteParent ?? path.parent
        switch access {
        case .owner, .group: return
        case .everyone:
            throw .file(.insecurePermissions, .writableByOthers(.vaultDirectory(directory.string)))
        case .otherUser(let user):
            throw .file(
                .insecurePermissions, .ownedByAnotherUser(.vaultDirectory(directory.string), user: user))
        }
    }

    /// The note for the user about the directory; `nil` for none.
    var note: String? {
        guard access == .group else { return nil }
        return
            "the group of the vault's directory can replace the vault: if other users are in it, run chmod g-w on the directory"
    }

    /// Returns the same place, without this device's state for the vault.
    func withoutState() -> VaultLocation {
        VaultLocation(directory: directory, name: name, state: nil, path: path, absolutePath: absolutePath)
    }

    /// Returns the place of the vault at `path` on the real disk, with the state directory of
    /// `configuration`. `creating` makes missing directories; otherwise a missing state directory counts as
    /// none.
    static func real(
        _ path: FilePath, configuration: FileVaultConfiguration, creating: Bool
    ) throws(TokenStorageError) -> VaultLocation {
        guard let last = path.lastComponent, last.kind == .regular, let name = String(validating: last),
            name.utf8.count <= 200
        else {
            throw .file(.invalidArgument, .limit(.vaultName))
        }
        // The vault beside it makes and removes files with such names.
        guard !name.hasSuffix(".torn"), !(name.hasPrefix(".") && name.hasSuffix(".new")) else {
            throw .file(.invalidArgument, .limit(.vaultNameEnding))
        }
        var parent = path.parent
        if parent.isEmpty { parent = "." }
        let state = configuration.stateDirectory
        var location: VaultLocation
        let own: FileAttributes?
        if creating {
            for place in [parent, state].compactMap({ $0 }) { try requireOwnPlace(for: place) }
        }
        do {
            if creating {
                try PosixDirectory.makeAll(parent)
                if let state { try PosixDirectory.makeAll(state) }
            }
            let directory = try PosixDirectory(parent)
            let stateDirectory = try open(state, creating: creating)
            location = VaultLocation(
                directory: directory, name: name, state: stateDirectory, path: path,
                absolutePath: directory.absolutePath?.appending(name))
            let given = ProgramContext.absolute(path)
            // Behind a link, `..` leads elsewhere than the text says.
            if !given.components.contains(where: { $0.kind == .parentDirectory }),
                given.lexicallyNormalized() != location.absolutePath
            {
                location.linkedPath = given.lexicallyNormalized()
            }
            own = try stateDirectory?.attributes(of: ".")
            if let there = try directory.attributes(of: ".") { location.access = DirectoryAccess(there) }
        } catch {
            if error.errno == .permissionDenied { throw closed(isClosed(state) ? state ?? parent : parent) }
            guard error.errno == .noSuchFileOrDirectory else { throw .system(error) }
            if let state = try? existing(state), let place = expectedPath(path),
                StateStore.remembersVault(at: [place], in: state)
            {
                throw .vaultIsGone(at: path)
            }
            throw .file(.unavailable, .noDirectory(path: path.parent.string))
        }
        // A user with permission to rename in the directory could remove the anchor, and hide an older copy
        // of the vault.
        if let own, own.owner != ProcessFacts.user {
            throw .file(.insecurePermissions, .ownedByAnotherUser(.stateDirectory, user: own.owner))
        }
        if let own, own.mode & 0o022 != 0 {
            throw .file(.insecurePermissions, .writableByOthers(.stateDirectory))
        }
        return location
    }

    /// Throws `insecurePermissions` when directories would have to be made in another user's directory. Under
    /// sudo, in the home directory of the calling user, root would make them, and that user could not use
    /// them.
    private static func requireOwnPlace(for path: FilePath) throws(TokenStorageError) {
        guard !isDirectory(path), let (place, owner) = FileAttributes.nearestDirectory(to: path),
            owner != ProcessFacts.user, owner != 0
        else { return }
        throw .file(.insecurePermissions, .ownedByAnotherUser(.path(place.string), user: owner))
    }

    /// Returns the error for a directory that this user may not look into, with its owner.
    private static func closed(_ path: FilePath) -> TokenStorageError {
        guard let (place, owner) = FileAttributes.nearestDirectory(to: path), owner != ProcessFacts.user
        else {
            return .file(.unavailable, .directoryClosed(path: path.string, owner: nil, of: nil))
        }
        return .file(.unavailable, .directoryClosed(path: path.string, owner: owner, of: place.string))
    }

    private static func isDirectory(_ path: FilePath) -> Bool {
        (try? PosixDirectory(path.isEmpty ? "." : path)) != nil
    }

    /// Returns the place that `path` leads to without links, as far as missing directories on the way allow.
    static func expectedPath(_ path: FilePath) -> FilePath? {
        var (above, below) = (path, FilePath())
        while let component = above.lastComponent {
            below = FilePath(root: nil, CollectionOfOne(component)).pushing(below)
            above.removeLastComponent()
            if let there = try? PosixDirectory(above.isEmpty ? "." : above) {
                return there.absolutePath?.pushing(below).lexicallyNormalized()
            }
        }
        return nil
    }

    /// Returns the error for a missing file: this device may know that a vault was there.
    func absence(_ reason: TokenStorageError.Reason) -> TokenStorageError {
        isOfVaultThatIsGone
            ? .vaultIsGone(at: path)
            : .file(.unavailable, reason)
    }

    /// Whether this device remembers a vault there. Nothing is there by now.
    var isOfVaultThatIsGone: Bool {
        guard let state, let here = absolutePath else { return false }
        return StateStore.remembersVault(at: [here], in: state)
    }

    /// Throws `notAVault` for a file that is not regular. The check comes before opening: opening a pipe or a
    /// device has effects.
    func requireRegularFile() throws(TokenStorageError) {
        guard let there = try? directory.attributes(of: name) else { return }
        try there.requireRegularFile()
    }

    /// Whether readers have to take the lock as well: other machines may write.
    var locksReaders: Bool { directory.isRemote && readOnlyReason == nil }

    /// Returns the state directory; `nil` when it is missing. A directory that may not be looked into is not missing:
    /// without what it has, this device's items would read as another device's.
    static func existing(_ path: FilePath?) throws(SystemFailure) -> PosixDirectory? {
        try open(path, creating: false)
    }

    private static func open(_ path: FilePath?, creating: Bool) throws(SystemFailure) -> PosixDirectory? {
        guard let path else { return nil }
        do {
            return try PosixDirectory(path)
        } catch {
            guard error.errno == .noSuchFileOrDirectory, !creating else { throw error }
            return nil
        }
    }

    /// Returns whether this user may not look into the directory.
    private static func isClosed(_ path: FilePath?) -> Bool {
        guard let path else { return false }
        do {
            _ = try PosixDirectory(path)
            return false
        } catch {
            return error.errno == .permissionDenied
        }
    }
}

/// The users, beside the system's administrator, with permission to replace files in a directory.
private enum DirectoryAccess: Equatable {
    case owner
    case group
    case everyone
    case otherUser(UInt32)

    init(_ directory: FileAttributes) {
        // With the sticky bit, only the owners of the directory and the file may.
        let isSticky = directory.mode & 0o1000 != 0
        if directory.owner != ProcessFacts.user, directory.owner != 0 {
            self = .otherUser(directory.owner)
        } else if directory.mode & 0o002 != 0, !isSticky {
            self = .everyone
        } else if directory.mode & 0o020 != 0, !isSticky {
            self = .group
        } else {
            self = .owner
        }
    }
}

extension FileAttributes {
    /// Throws `notAVault` for a file that is not regular.
    func requireRegularFile() throws(TokenStorageError) {
        switch kind {
        case .regular: return
        case .directory: throw .file(.notAVault, .notARegularFile(.directory))
        case .symbolicLink:
            throw .file(.notAVault, .notARegularFile(.symbolicLink))
        case .other: throw .file(.notAVault, .notARegularFile(.special))
        }
    }
}
