internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultPlatform

/// The names that a vault's file has beside the vault's own: hard links to it.
///
/// Each of the names leads to one file, which is written to in place. If another file took the vault's name,
/// the other names would keep the previous file: one vault at two paths, each going its own way. So a file
/// that has several names is not replaced.
struct HardLinks {
    let location: VaultLocation

    /// Returns the number of other names of `file`, without those that a crash left while giving it a name.
    func count(of file: any DiskFile) throws(TokenStorageError) -> Int {
        let attributes = try onDisk { () throws(SystemFailure) in try file.attributes() }
        guard attributes.links > 1 else { return 0 }
        return attributes.links - 1 - left(by: attributes.identity).count
    }

    /// Throws `duplicateVault` when there are other names.
    func requireNone(of file: any DiskFile) throws(TokenStorageError) {
        let count = try count(of: file)
        guard count > 0 else { return }
        throw .file(.duplicateVault, .hardLinks(count: count, path: location.path.string))
    }

    /// Removes the names that a crash left beside `file`, whose lock the caller holds.
    func removeLeftOver(of file: any DiskFile) throws(TokenStorageError) {
        let attributes = try onDisk { () throws(SystemFailure) in try file.attributes() }
        guard attributes.links > 1 else { return }
        for name in left(by: attributes.identity) { try? location.directory.remove(name) }
    }

    /// Returns the names that a file has for a moment before it gets another, or before another file takes
    /// its own.
    private func left(by identity: FileIdentity) -> [String] {
        guard let all = try? location.directory.names() else { return [] }
        return all.filter { name in
            guard
                ConflictCopies.isReplaced(name, of: location.name)
                    || ConflictCopies.isUnfinished(name, of: location.name)
            else { return false }
            return (try? location.directory.attributes(of: name))?.identity == identity
        }
    }

    /// Returns the text in ``VaultStatus/notes`` about other names; `nil` when there are none.
    func note(of file: any DiskFile) -> String? {
        guard let count = try? count(of: file), count > 0 else { return nil }
        return
            "the file has \(count == 1 ? "another name" : "\(count) other names") (a hard link): writes go on, but the "
            + "vault is neither compacted nor replaced until the file has one name only"
    }
}
