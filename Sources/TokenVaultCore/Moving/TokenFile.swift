internal import SystemPackage
internal import TokenVaultPlatform

/// The plaintext file with the secrets: read with checks, and removed in steps that survive a crash.
struct TokenFile: Sendable {
    static let largest = 16 << 20

    let directory: any DiskDirectory
    let name: String

    /// The file's name during the last check of its contents.
    private var movedName: String { ".\(name).adopting" }
    /// The file's name once its secrets are stored elsewhere and only its removal is left.
    private var doomedName: String { ".\(name).adopted" }

    /// The contents of the file, with its identity.
    struct Contents: Sendable {
        let secret: Secret
        let identity: FileIdentity
        let isReadableByOthers: Bool
    }

    /// Returns the file at `path`. Throws `unavailable` when there is no such directory.
    static func at(_ path: FilePath) throws(TokenStorageError) -> TokenFile {
        guard let name = path.lastComponent?.string, path.lastComponent?.kind == .regular else {
            throw .file(.invalidArgument, .limit(.filePath))
        }
        let parent = path.parent
        return try onDisk { () throws(SystemFailure) in
            TokenFile(directory: try PosixDirectory(parent.isEmpty ? "." : parent), name: name)
        }
    }

    /// Returns the contents, or `nil` when there is no file. Throws `insecurePermissions` when another user
    /// can change or replace the file, `invalidArgument` when it is no regular file, `tooLarge` above 16 MiB.
    func read() throws(TokenStorageError) -> Contents? {
        guard let file = try open(name, .read) else { return nil }
        let attributes = try checked(file)
        guard attributes.size <= Self.largest else {
            throw .file(.tooLarge, .limit(.fileOfTokens))
        }
        var bytes = try onDisk { () throws(SystemFailure) in try file.read(attributes.size + 1, at: 0) }
        defer { SmallFile.wipe(&bytes) }
        guard bytes.count == attributes.size else { throw Self.changed }
        return Contents(
            secret: Secret(bytes), identity: attributes.identity,
            isReadableByOthers: attributes.mode & 0o044 != 0)
    }

    /// Removes the file that `contents` was read from. Throws `conflict`, with the file at its old name, when
    /// it changed since.
    ///
    /// The file is first renamed, out of reach of its writer, and checked again. A second name marks its
    /// contents as no longer needed. The file is then overwritten and unlinked.
    func remove(_ contents: Contents) throws(TokenStorageError) {
        let (directory, name, moved, doomed) = (directory, name, movedName, doomedName)
        do {
            try directory.rename(name, to: moved, replacing: false)
        } catch {
            // Another process renamed the same file first.
            if error.errno == .noSuchFileOrDirectory { return try removeDoomed() }
            throw .system(error)
        }
        guard let file = try open(moved, .read) else { return }
        let attributes = try onDisk { () throws(SystemFailure) in try file.attributes() }
        var now = try onDisk { () throws(SystemFailure) in
            try file.read(contents.secret.count + 1, at: 0)
        }
        defer { SmallFile.wipe(&now) }
        guard attributes.identity == contents.identity, Secret(now) == contents.secret else {
            try putBack()
            throw Self.changed
        }
        do {
            try directory.rename(moved, to: doomed, replacing: true)
        } catch {
            // Another process restored the file and imports it.
            if error.errno != .noSuchFileOrDirectory { throw .system(error) }
        }
        try removeDoomed()
    }

    /// Completes the steps that an earlier run left undone. A file that was not checked yet gets its name
    /// back, unless a new file was written under that name meanwhile, which takes precedence. A checked file
    /// is removed.
    func tidy() throws(TokenStorageError) {
        try putBack()
        try removeDoomed()
    }

    private func putBack() throws(TokenStorageError) {
        let (directory, name, moved, doomed) = (directory, name, movedName, doomedName)
        try onDisk { () throws(SystemFailure) in
            guard try directory.attributes(of: moved) != nil else { return }
            do throws(SystemFailure) {
                try directory.rename(moved, to: name, replacing: false)
            } catch {
                switch error.errno {
                case .noSuchFileOrDirectory: return
                case .fileExists: try directory.rename(moved, to: doomed, replacing: true)
                default: throw error
                }
            }
            try directory.synchronize()
        }
    }

    /// Removes the file whose contents are no longer needed. It is overwritten first, unless it has a second
    /// hard link or is not writable.
    private func removeDoomed() throws(TokenStorageError) {
        let (directory, doomed) = (directory, doomedName)
        guard
            let attributes = try onDisk({ () throws(SystemFailure) in try directory.attributes(of: doomed) })
        else { return }
        if attributes.links == 1, attributes.mode & 0o200 != 0, let file = try open(doomed, .readWrite) {
            let size = try checked(file).size
            try onDisk { () throws(SystemFailure) in
                // The name must be durable first: a crash during the overwrite would otherwise leave an
                // undecodable file at the old name.
                try directory.synchronize()
                var offset = 0
                while offset < size {
                    let count = min(size - offset, 1 << 20)
                    try file.write([UInt8](repeating: 0, count: count), at: offset)
                    offset += count
                }
                try file.synchronize()
            }
        }
        do {
            try directory.remove(doomed)
        } catch {
            if error.errno != .noSuchFileOrDirectory { throw .system(error) }
        }
        try onDisk { () throws(SystemFailure) in try directory.synchronize() }
    }

    private static var changed: TokenStorageError {
        .file(.conflict, .changedMeanwhile(.tokenFile))
    }

    private func open(_ name: String, _ access: FileAccess) throws(TokenStorageError) -> (any DiskFile)? {
        do {
            return try directory.open(name, access)
        } catch {
            switch error.errno {
            case .noSuchFileOrDirectory: return nil
            case .tooManySymbolicLinkLevels:
                throw .file(.insecurePermissions, .notARegularFile(.symbolicLink))
            default: throw .system(error)
            }
        }
    }

    private func checked(_ file: any DiskFile) throws(TokenStorageError) -> FileAttributes {
        let directory = directory
        let (attributes, parent) = try onDisk { () throws(SystemFailure) in
            (try file.attributes(), try directory.attributes(of: "."))
        }
        guard attributes.kind == .regular else {
            throw .file(.invalidArgument, .notARegularFile(.other))
        }
        let user = ProcessFacts.user
        guard attributes.owner == user, attributes.mode & 0o022 == 0 else {
            throw .file(.insecurePermissions, .writableByOthers(.tokenFile))
        }
        // Root has full access anyway. In a sticky directory only the owner of a file can rename it.
        guard let parent, parent.owner == user || parent.owner == 0,
            parent.mode & 0o022 == 0 || parent.mode & 0o1000 != 0
        else {
            throw .file(.insecurePermissions, .writableByOthers(.tokenFileDirectory))
        }
        return attributes
    }
}
