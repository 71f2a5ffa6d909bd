internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// A new file that is about to take a vault's name, locked from the beginning.
struct AtomicFile {
    let file: any DiskFile
    /// The file without a name, where nothing keeps two writers apart; `nil` where the lock of the file with
    /// the vault's name does.
    private let unfinished: UnfinishedFile?
    private let place: VaultLocation
    private var name: String { VaultLog.temporaryName(for: place.name) }

    /// Makes the file. Without `isAlone`, the caller holds the lock of the file that has the name now, and
    /// the remainder of a crash is removed.
    init(in place: VaultLocation, isAlone: Bool) throws(TokenStorageError) {
        self.place = place
        let (name, directory) = (VaultLog.temporaryName(for: place.name), place.directory)
        UnfinishedFiles(directory: directory, kind: .vault(place.name)).removeLeftOver()
        if isAlone {
            let unfinished = try UnfinishedFile(in: directory) {
                ".\(place.name).\(Random.bytes(8).hexadecimal)"
            }
            self.unfinished = unfinished
            file = unfinished.file
        } else {
            unfinished = nil
            try? directory.remove(name)
            file = try onDisk { () throws(SystemFailure) in try directory.open(name, .create) }
        }
        let made = file
        guard try onDisk({ () throws(SystemFailure) in try made.tryLock(.exclusive) }) else {
            throw .file(.internalError)
        }
    }

    func remove() {
        if let unfinished { unfinished.remove() } else { try? place.directory.remove(name) }
    }

    /// Takes a free name, for a file that is alone. Throws `alreadyExists` when the name is taken by now.
    func takeName() throws(TokenStorageError) {
        do {
            try unfinished?.takeName(place.name)
        } catch {
            remove()
            throw .system(error)
        }
    }

    /// Takes the name of `existing`, whose lock the caller holds, and returns the path where the old file is
    /// kept.
    func replace(
        _ existing: ExistingFile, last: ScannedFrame?, codec: FrameCodec, keepingAside: Bool
    ) throws(TokenStorageError) -> FilePath? {
        var aside: String?
        do throws(TokenStorageError) {
            // This comes first: the kept file announces the replacement too, which does no harm.
            try? existing.announceReplacement(behind: last, codec)
            if keepingAside, !existing.isEmpty {
                // Whatever other users could do with the old file, they get no access to the kept file.
                let old = existing.file
                try onDisk { () throws(SystemFailure) in try old.makePrivate() }
                aside = try keep(existing)
            }
            let (name, place) = (name, place)
            // A file that was put in the place meanwhile must not be lost.
            try existing.requireIn(place)
            try onDisk { () throws(SystemFailure) in
                try place.directory.rename(name, to: place.name, replacing: true)
            }
        } catch {
            if let aside { try? place.directory.remove(aside) }
            remove()
            // Bytes written behind the log stay there, and must not come and go.
            try? existing.file.synchronize()
            throw error
        }
        return aside.map { place.path.parent.appending($0) }
    }

    /// Gives the file in the place a second name, or copies its bytes where there are no second names.
    private func keep(_ existing: ExistingFile) throws(TokenStorageError) -> String {
        var number = 1
        while true {
            let name = number == 1 ? "\(place.name).replaced" : "\(place.name).replaced-\(number)"
            do {
                if try place.directory.attributes(of: name) == nil {
                    try place.directory.link(place.name, to: name)
                    return name
                }
            } catch {
                switch error.errno {
                case .fileExists: break
                case Errno.noSpace, .ioError, .readOnlyFileSystem, .permissionDenied: throw .system(error)
                default:
                    try copyBytes(of: existing, to: name)
                    return name
                }
            }
            number += 1
        }
    }

    private func copyBytes(of existing: ExistingFile, to name: String) throws(TokenStorageError) {
        let (directory, source) = (place.directory, existing.file)
        let kept = try onDisk { () throws(SystemFailure) in try directory.open(name, .create) }
        do {
            try source.copyBytes(to: kept)
            try kept.synchronize()
        } catch {
            try? directory.remove(name)
            throw .system(error)
        }
    }

    /// Makes the name durable. Throws `outcomeUnknown`: the old file may have the name again after a power
    /// cut.
    func settle() throws(TokenStorageError) {
        do {
            try place.directory.synchronize()
        } catch {
            throw .file(.outcomeUnknown, .renameMayBeLost(.init(error)))
        }
    }
}

extension DiskFile {
    /// Writes all bytes of this file to `other`, an empty one. Holes stay holes.
    func copyBytes(to other: any DiskFile) throws(SystemFailure) {
        let size = try attributes().size
        var end = 0
        while let place = data(from: end), place < size {
            let bytes = try read(1 << 20, at: place)
            if bytes.isEmpty { return }
            try other.write(bytes, at: place)
            end = place + bytes.count
        }
        if end < size { try other.resize(to: size) }
    }
}
