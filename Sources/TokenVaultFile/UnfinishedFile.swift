internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultPlatform

/// A new file that gets its name once it is whole.
///
/// Until then the file has no name, and is gone with the program that writes it, whatever stops the program.
/// Where the file system has no nameless files, the file has a temporary name and a lock. The lock shows
/// ``UnfinishedFiles`` that a program writes the file.
struct UnfinishedFile {
    let file: any DiskFile
    private let directory: any DiskDirectory
    /// The temporary name; `nil` when the file has none.
    private let temporary: String?

    /// Makes the file in `directory`; each call of `name` gives another name.
    init(in directory: any DiskDirectory, named name: () -> String) throws(TokenStorageError) {
        self.directory = directory
        do {
            file = try directory.open("", .nameless)
            temporary = nil
            // No other process can have the file open: the lock is for the time when the file has its name.
            _ = try? file.tryLock(.exclusive)
        } catch {
            guard error.saysNoNamelessFiles else { throw .system(error) }
            (file, temporary) = try Self.named(name, in: directory)
        }
    }

    /// Returns a file with a temporary name, locked where the file system has locks.
    private static func named(
        _ name: () -> String, in directory: any DiskDirectory
    ) throws(TokenStorageError) -> (any DiskFile, String) {
        while true {
            let name = name()
            let file = try onDisk { () throws(SystemFailure) in try directory.open(name, .create) }
            do {
                // A process that removes leftover files may have come before the lock.
                if try file.tryLock(.exclusive),
                    try directory.attributes(of: name)?.identity == file.attributes().identity
                {
                    return (file, name)
                }
            } catch {
                return (file, name)
            }
            try? directory.remove(name)
        }
    }

    /// Gives the file the name `name`. Fails with `EEXIST` when the name is taken.
    func takeName(_ name: String) throws(SystemFailure) {
        if let temporary {
            try directory.rename(temporary, to: name, replacing: false)
        } else {
            try file.takeName(name)
        }
    }

    /// Removes a file that has not got its name.
    func remove() {
        if let temporary { try? directory.remove(temporary) }
    }
}
