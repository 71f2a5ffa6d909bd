internal import TokenVaultCore
internal import TokenVaultPlatform

/// Finds the copies that synchronising programs leave beside a vault when two devices wrote to it at once.
///
/// The search takes one look at the directory's names, and opens only files whose names match. It runs when
/// the caller asks for the vault's status, not when an item is read.
struct ConflictCopies {
    let location: VaultLocation
    let vault: VaultIdentifier

    /// Returns the names of files beside the vault that are the same vault, in order. A name that is no UTF-8
    /// becomes a text that shows its bytes.
    func names() -> [String] {
        let directory = location.directory
        let texts = ((try? directory.names()) ?? []).filter {
            Self.isConflict(Array($0.utf8), of: Array(location.name.utf8)) && isVault($0)
        }
        let others = ((try? directory.otherNames()) ?? []).filter { name in
            Self.isConflict(name, of: Array(location.name.utf8))
                && isVault((try? directory.open(otherName: name)).flatMap { try? VaultFile($0) })
        }
        return (texts + others.map { String(escaping: $0) }).sorted()
    }

    /// Returns the names that ``AtomicFile`` gave to files of the same vault when it took their place. With
    /// `orItself`, one may be another name of the vault's file, which an interrupted restore left.
    func namesOfReplaced(orItself: Bool = true) -> [String] {
        guard let all = try? location.directory.names() else { return [] }
        return all.filter { Self.isReplaced($0, of: location.name) && isVault($0, orItself: orItself) }
    }

    /// Returns whether `name` is one that ``AtomicFile`` gives to a replaced file with the name `original`.
    static func isReplaced(_ name: String, of original: String) -> Bool {
        guard name.hasPrefix(original + ".replaced") else { return false }
        let number = name.dropFirst(original.count + ".replaced".count)
        return number.isEmpty || (number.first == "-" && Int(number.dropFirst()) != nil)
    }

    /// Returns the names that restoring, adopting and salvaging left beside the vault, to be removed with it. Also those of
    /// files whose keybag is damaged and names the vault: their items would still be there.
    func namesLeftBehind() -> [String] {
        let names = (try? location.directory.names()) ?? []
        let damaged = names.filter { name in
            guard Self.isReplaced(name, of: location.name) || Self.isUnfinished(name, of: location.name),
                let found = VaultFile(named: name, in: location.directory)
            else { return false }
            do throws(TokenStorageError) {
                _ = try found.keybags
                return false
            } catch {
                guard error.code == .corrupt, let front = try? KeybagCopies.front(of: found.file) else {
                    return false
                }
                return KeybagCopies.claimedVaults(front: front).contains(vault)
            }
        }
        return namesOfReplaced() + namesOfUnfinished() + damaged
    }

    /// Returns the names of files that are the same vault and never got its name.
    func namesOfUnfinished() -> [String] {
        guard let all = try? location.directory.names() else { return [] }
        return all.filter { Self.isUnfinished($0, of: location.name) && isVault($0, orItself: true) }
    }

    /// Returns whether `name` is one that ``AtomicFile`` or ``VaultCreation`` gives to a file before the name
    /// `original`.
    static func isUnfinished(_ name: String, of original: String) -> Bool {
        guard name.hasPrefix(".\(original).") else { return false }
        let rest = name.dropFirst(original.count + 2)
        return [16, 32].contains(rest.utf8.count) && rest.allSatisfy(\.isHexDigit)
    }

    private func isVault(_ name: String, orItself: Bool = false) -> Bool {
        isVault(VaultFile(named: name, in: location.directory), orItself: orItself)
    }

    private func isVault(_ found: VaultFile?, orItself: Bool = false) -> Bool {
        guard let found, let own = try? location.directory.attributes(of: location.name),
            orItself || found.attributes.identity != own.identity
        else { return false }
        return found.isOf(vault)
    }

    /// Returns whether `name` is one that a program makes of `original` in a conflict. Syncthing makes
    /// `NAME.sync-conflict-20261121-190753-ABCDEFG.EXT`, Dropbox and Nextcloud
    /// `NAME (… conflicted copy …).EXT`, OneDrive `NAME-HOST.EXT`. Google Drive and Seafile make
    /// `NAME (1).EXT` and `NAME (SFConflict …).EXT`. Names are compared byte for byte: a name may be no
    /// UTF-8.
    static func isConflict(_ name: [UInt8], of original: [UInt8]) -> Bool {
        guard name != original else { return false }
        let dot = original.lastIndex(of: UInt8(ascii: ".")) ?? 0
        let (stem, ending) = dot == 0 ? (original[...], []) : (original[..<dot], original[dot...])
        guard name.starts(with: stem), name.suffix(ending.count) == ending,
            name.count > stem.count + ending.count
        else { return false }
        let between = name.dropFirst(stem.count).dropLast(ending.count)
        return [".sync-conflict-", "-", "_conf("].contains { between.starts(with: $0.utf8) }
            || between.starts(with: " (".utf8) && between.last == UInt8(ascii: ")")
    }
}
