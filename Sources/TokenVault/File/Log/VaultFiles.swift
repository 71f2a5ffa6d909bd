internal import SystemPackage
internal import TokenVaultPlatform

/// Opens vault files and looks at them before anything in them is believed.
enum VaultFiles {
    /// The file at `location`, for writing where that is possible. Throws `unavailable` when there is
    /// none, `notAVault` for what is no regular file, `insecurePermissions` for another's or an open one.
    static func open(_ location: VaultLocation) throws(TokenStorageError) -> any DiskFile {
        try openNoting(location).file
    }

    /// As ``open(_:)``, with what keeps the file from being opened for writing.
    static func openNoting(
        _ location: VaultLocation
    ) throws(TokenStorageError) -> (file: any DiskFile, obstacle: WritingObstacle?) {
        var obstacle = location.obstacle
        try location.requireRegularFile()
        let file: any DiskFile
        do {
            file = try location.directory.open(location.name, obstacle == nil ? .readWrite : .read)
        } catch {
            switch error.errno {
            case .readOnlyFileSystem, .permissionDenied, .textFileBusy:
                obstacle = error.errno == .readOnlyFileSystem ? .fileSystem : .permissions
                file = try onDisk { () throws(SystemFailure) in
                    try location.directory.open(location.name, .read)
                }
            case .noSuchFileOrDirectory:
                throw location.absence(.noVault(path: location.path.string))
            case .tooManySymbolicLinkLevels:
                throw .file(.notAVault, .notARegularFile(.symbolicLink))
            default:
                throw .system(error)
            }
        }
        let attributes = try onDisk { () throws(SystemFailure) in try file.attributes() }
        try attributes.requireRegularFile()
        // Advice to change the mode of a file that is no vault would be bad advice.
        let magic = try onDisk { () throws(SystemFailure) in
            [
                try file.read(Keybag.magic.count, at: 0),
                try file.read(Keybag.magic.count, at: VaultFormat.keybagLength),
            ]
        }
        guard magic.contains(Keybag.magic) else { throw .file(.notAVault) }
        try attributes.requirePrivate(location.path)
        return (file, obstacle)
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
