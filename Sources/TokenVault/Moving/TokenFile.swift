internal import SystemPackage
internal import TokenVaultPlatform

/// The file that secrets lay in before: read with care, and removed in steps that a crash may come between.
struct TokenFile: Sendable {
    static let largest = 16 << 20

    let directory: any DiskDirectory
    let name: String

    /// What the file is called while it is looked at a last time.
    private var movedName: String { ".\(name).adopting" }
    /// What the file is called once all of it is stored elsewhere and nothing is left but to remove it.
    private var doomedName: String { ".\(name).adopted" }

    /// What was read.
    struct Contents: Sendable {
        let secret: Secret
        let identity: FileIdentity
        let isReadableByOthers: Bool
    }

    /// The file at `path`. Throws `unavailable` when there is no such directory.
    static func at(_ path: FilePath) throws(TokenStorageError) -> TokenFile {
        guard let name = path.lastComponent?.string, path.lastComponent?.kind == .regular else {
            throw .file(.invalidArgument, .limit(.filePath))
        }
        let parent = path.parent
        return try onDisk { () throws(SystemFailure) in
            TokenFile(directory: try PosixDirectory(parent.isEmpty ? "." : parent), name: name)
        }
    }

    /// The contents; `nil` when there is no file. Throws `insecurePermissions` when others can change it, or put
    /// another in its place, `invalidArgument` for what is no regular file, `tooLarge` above 16 MiB.
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

    /// Removes the file that `contents` was read from: out of the reach of who writes it, it is looked at again, gets
    /// a name that says that nothing of it is needed any more, is overwritten and unlinked. Throws `conflict`, with
    /// the file in its place, when it is no longer as it was read.
    func remove(_ contents: Contents) throws(TokenStorageError) {
        let (directory, name, moved, doomed) = (directory, name, movedName, doomedName)
        do {
            try directory.rename(name, to: moved, replacing: false)
        } catch {
            // Another process was faster, with the same.
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
            // Another process put it back, and adopts it.
            if error.errno != .noSuchFileOrDirectory { throw .system(error) }
        }
        try removeDoomed()
    }

    /// Ends what a run before this one did not come to: what it had not looked at again gets its name back, unless
    /// the file was written anew meanwhile, which says more; what it had is removed.
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

    /// Removes what nothing is needed of any more. It is overwritten, unless it has another name somewhere, or may not
    /// be written to.
    private func removeDoomed() throws(TokenStorageError) {
        let (directory, doomed) = (directory, doomedName)
        guard
            let attributes = try onDisk({ () throws(SystemFailure) in try directory.attributes(of: doomed) })
        else { return }
        if attributes.links == 1, attributes.mode & 0o200 != 0, let file = try open(doomed, .readWrite) {
            let size = try checked(file).size
            try onDisk { () throws(SystemFailure) in
                // The name first: overwritten under the old one, a crash would leave what cannot be decoded.
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
        // Root may do anything anyway, and a sticky directory keeps a file's name its owner's.
        guard let parent, parent.owner == user || parent.owner == 0,
            parent.mode & 0o022 == 0 || parent.mode & 0o1000 != 0
        else {
            throw .file(.insecurePermissions, .writableByOthers(.tokenFileDirectory))
        }
        return attributes
    }
}
