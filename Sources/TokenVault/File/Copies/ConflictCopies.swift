internal import TokenVaultPlatform

/// Finds the copies that synchronising programs leave beside a vault when two devices wrote to it at once.
///
/// It takes one look at the directory's names; only those that look like one are opened. It is done when the
/// vault's status is asked for, not when an item is read.
struct ConflictCopies {
    let location: VaultLocation
    let vault: VaultIdentifier

    /// The names of files beside the vault that are the same vault, in order.
    func names() -> [String] {
        guard let all = try? location.directory.names() else { return [] }
        return all.filter { Self.isConflict($0, of: location.name) && isVault($0) }.sorted()
    }

    /// The names that ``FreshFile`` gave to files of the same vault when it took their place.
    func namesOfReplaced() -> [String] {
        guard let all = try? location.directory.names() else { return [] }
        return all.filter { Self.isReplaced($0, of: location.name) && isVault($0, orItself: true) }
    }

    /// Whether `name` is one that ``FreshFile`` gives to what had the name `original`.
    static func isReplaced(_ name: String, of original: String) -> Bool {
        guard name.hasPrefix(original + ".replaced") else { return false }
        let number = name.dropFirst(original.count + ".replaced".count)
        return number.isEmpty || (number.first == "-" && Int(number.dropFirst()) != nil)
    }

    /// What restoring, adopting and salvaging left beside the vault, to be removed with it.
    func namesLeftBehind() -> [String] { namesOfReplaced() + namesOfUnfinished() }

    /// The names of files that are the same vault and that ``FreshFile`` had not come to give their name to.
    func namesOfUnfinished() -> [String] {
        guard let all = try? location.directory.names() else { return [] }
        return all.filter { name in
            guard name.hasPrefix(".\(location.name).") else { return false }
            let rest = name.dropFirst(location.name.count + 2)
            return rest.utf8.count == 16 && rest.allSatisfy { $0.isHexDigit } && isVault(name)
        }
    }

    private func isVault(_ name: String, orItself: Bool = false) -> Bool {
        guard let file = try? location.directory.open(name, .read),
            let attributes = try? file.attributes(), attributes.kind == .regular,
            let own = try? location.directory.attributes(of: location.name),
            orItself || attributes.identity != own.identity, let copies = try? KeybagCopies(reading: file)
        else { return false }
        return copies.whole.contains { $0.keybag.vault == vault }
    }

    /// Whether `name` is what a program makes of `original` in a conflict: Syncthing
    /// `NAME.sync-conflict-20261121-190753-ABCDEFG.EXT`, Dropbox and Nextcloud `NAME (… conflicted copy …).EXT`,
    /// OneDrive `NAME-HOST.EXT`, Google Drive and Seafile `NAME (1).EXT`, `NAME (SFConflict …).EXT`.
    static func isConflict(_ name: String, of original: String) -> Bool {
        guard name != original else { return false }
        let parts = original.split(separator: ".", omittingEmptySubsequences: false)
        let isPlain = parts.count < 2 || (parts.count == 2 && parts[0].isEmpty)
        let ending = isPlain ? "" : "." + (parts.last ?? "")
        let stem = String(original.dropLast(ending.count))
        guard name.hasPrefix(stem), name.hasSuffix(ending), name.count > stem.count + ending.count else {
            return false
        }
        let between = name.dropFirst(stem.count).dropLast(ending.count)
        if between.hasPrefix(".sync-conflict-") || between.hasPrefix("-") || between.hasPrefix("_conf(") {
            return true
        }
        return between.hasPrefix(" (") && between.hasSuffix(")")
    }
}
