internal import SystemPackage
internal import TokenVaultPlatform

/// A new file that is given its name once it is whole.
///
/// Until then it has none, and is gone with the program that writes it, whatever stops that. Where the file system
/// knows no such files it has a name of its own, and a lock that tells ``UnfinishedFiles`` that somebody writes it.
struct UnfinishedFile {
    let file: any DiskFile
    private let directory: any DiskDirectory
    /// The name that it has until then; `nil` when it has none.
    private let temporary: String?

    /// Makes it in `directory`; each call of `name` gives another name.
    init(in directory: any DiskDirectory, named name: () -> String) throws(TokenStorageError) {
        self.directory = directory
        do {
            file = try directory.open("", .nameless)
            temporary = nil
            // Nobody else can have it open: this is for the time when it has its name.
            _ = try? file.tryLock(.exclusive)
        } catch {
            guard error.saysNoNamelessFiles else { throw .system(error) }
            (file, temporary) = try Self.named(name, in: directory)
        }
    }

    /// A file with a name of its own, locked where the file system has locks.
    private static func named(
        _ name: () -> String, in directory: any DiskDirectory
    ) throws(TokenStorageError) -> (any DiskFile, String) {
        while true {
            let name = name()
            let file = try onDisk { () throws(SystemFailure) in try directory.open(name, .create) }
            do {
                // Who removes what is left of others may have come before the lock.
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

    /// Gives it the name `name`. Fails with `EEXIST` when something has that.
    func takeName(_ name: String) throws(SystemFailure) {
        if let temporary {
            try directory.rename(temporary, to: name, replacing: false)
        } else {
            try file.takeName(name)
        }
    }

    /// Removes what has not been given its name.
    func remove() {
        if let temporary { try? directory.remove(temporary) }
    }
}
