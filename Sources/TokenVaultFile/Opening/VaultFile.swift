internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultPlatform

/// A vault's file that was opened and checked before its contents are trusted. Every file of a vault is
/// opened here.
struct VaultFile: Sendable {
    /// The reason to open the file, which decides how it is opened and what must be true of it.
    enum Purpose {
        /// To work with the vault. It is opened for writing where that is possible, and must be this user's
        /// alone.
        case use
        /// To read a copy of the vault, in any state and of any owner.
        case copy
        /// To put another file in its place. It must be this user's, and a vault's or empty.
        case replacement
    }

    let file: any DiskFile
    /// The file's attributes when it was opened.
    let attributes: FileAttributes
    /// The bytes of both copies of the keybag, or fewer where the file ends before; the failure to read them.
    let front: Result<[UInt8], TokenStorageError>
    /// The obstacle to writing to the file; looked for when it is opened for use.
    let readOnlyReason: ReadOnlyReason?

    /// Opens the file at `location`. Throws `unavailable` when there is none, and `notAVault` for a file that
    /// is not regular or, except for a copy, has no keybag. Throws `insecurePermissions` for a file of
    /// another user, and for a file to use that other users may open. Also throws the system's failures.
    static func open(
        _ location: VaultLocation, for purpose: Purpose
    ) throws(TokenStorageError) -> VaultFile {
        if let found = try openIfThere(location, for: purpose) { return found }
        let path = location.path.string
        throw location.absence(purpose == .copy ? .noCopy(path: path) : .noVault(path: path))
    }

    /// Opens the file the same way; `nil` when there is none.
    static func openIfThere(
        _ location: VaultLocation, for purpose: Purpose
    ) throws(TokenStorageError) -> VaultFile? {
        try location.requireRegularFile()
        let file: any DiskFile
        let readOnlyReason: ReadOnlyReason?
        do {
            (file, readOnlyReason) = try openFile(location, for: purpose)
        } catch {
            switch error.errno {
            case .noSuchFileOrDirectory: return nil
            case .tooManySymbolicLinkLevels: throw .file(.notAVault, .notARegularFile(.symbolicLink))
            default: throw .system(error)
            }
        }
        let opened = try VaultFile(file, readOnlyReason)
        try opened.check(for: purpose, at: location.path)
        return opened
    }

    /// Opens the file, for writing where `purpose` asks for that. A file to use is opened for reading where
    /// writing is not possible.
    private static func openFile(
        _ location: VaultLocation, for purpose: Purpose
    ) throws(SystemFailure) -> (any DiskFile, ReadOnlyReason?) {
        let (directory, name) = (location.directory, location.name)
        switch purpose {
        case .copy: return (try directory.open(name, .read), nil)
        case .replacement: return (try directory.open(name, .readWrite), nil)
        case .use:
            if let obstacle = location.readOnlyReason { return (try directory.open(name, .read), obstacle) }
            do throws(SystemFailure) {
                return (try directory.open(name, .readWrite), nil)
            } catch {
                guard let obstacle = ReadOnlyReason(error) else { throw error }
                return (try directory.open(name, .read), obstacle)
            }
        }
    }

    /// Opens the file `name` beside a vault, to see which vault it is; `nil` for a file that is not regular
    /// or cannot be opened. Opening a pipe or a device has effects.
    init?(named name: String, in directory: any DiskDirectory) {
        guard (try? directory.attributes(of: name))?.kind == .regular,
            let file = try? directory.open(name, .read), let found = try? VaultFile(file)
        else { return nil }
        self = found
    }

    /// Examines `file`, whichever way it was opened. Throws `notAVault` for a file that is not regular.
    init(_ file: any DiskFile, _ obstacle: ReadOnlyReason? = nil) throws(TokenStorageError) {
        self.file = file
        self.readOnlyReason = obstacle
        attributes = try onDisk { () throws(SystemFailure) in try file.attributes() }
        try attributes.requireRegularFile()
        // An unreadable part does not keep a damaged vault from being removed.
        front = Result { () throws(TokenStorageError) in try KeybagCopies.front(of: file) }
    }

    private func check(for purpose: Purpose, at path: FilePath) throws(TokenStorageError) {
        // Advice to change the mode of a file that is no vault would be bad advice.
        switch purpose {
        case .copy: return
        case .use:
            guard try hasMagic() else { throw .file(.notAVault) }
            try attributes.requirePrivate(path)
        case .replacement:
            let isVault = try hasMagic()
            guard isEmpty || isVault else { throw .file(.notAVault, .occupied(path: path.string)) }
            guard attributes.owner == ProcessFacts.user else {
                throw .file(.insecurePermissions, .ownedByAnotherUser(.vaultPlace, user: attributes.owner))
            }
        }
    }

    private func hasMagic() throws(TokenStorageError) -> Bool {
        let (file, length) = (file, Keybag.magic.count)
        for place in [0, VaultFormat.keybagLength] {
            let bytes: [UInt8]
            if case .success(let front) = front {
                bytes = Array(front.dropFirst(place).prefix(length))
            } else {
                bytes = try onDisk { () throws(SystemFailure) in try file.read(length, at: place) }
            }
            if bytes == Keybag.magic { return true }
        }
        return false
    }

    var isEmpty: Bool { attributes.size == 0 }

    /// The copies of the keybag as they were when the file was opened. Throws as
    /// ``KeybagCopies/init(front:)``.
    var keybags: KeybagCopies {
        get throws(TokenStorageError) { try KeybagCopies(front: try front.get()) }
    }

    /// Returns whether a whole copy of the keybag names `vault`. Nothing of that is authenticated.
    func isOf(_ vault: VaultIdentifier) -> Bool { (try? keybags.vaults.contains(vault)) ?? false }
}

extension ReadOnlyReason {
    /// Creates the reason that a failure to open a file for writing shows; `nil` for other failures.
    fileprivate init?(_ failure: SystemFailure) {
        switch failure.errno {
        case .readOnlyFileSystem: self = .fileSystem
        case .permissionDenied, .textFileBusy: self = .permissions
        default: return nil
        }
    }
}

extension FileAttributes {
    /// Throws `insecurePermissions` for a vault's file, at `path`, that is another user's or open to others.
    func requirePrivate(_ path: FilePath) throws(TokenStorageError) {
        guard owner == ProcessFacts.user else {
            throw .file(.insecurePermissions, .ownedByAnotherUser(.path(path.string), user: owner))
        }
        guard mode & 0o077 == 0 else {
            throw .file(.insecurePermissions, .writableByOthers(.path(path.string)))
        }
    }
}
