import Glibc
import SystemPackage
import TokenVaultPlatform

/// Removes a directory and all below it.
func removeTree(_ path: FilePath) {
    guard let directory = try? PosixDirectory(path), let names = try? directory.names() else { return }
    for name in names {
        let below = path.appending(name)
        if (try? directory.attributes(of: name))?.kind == .directory {
            removeTree(below)
        } else {
            try? directory.remove(name)
        }
    }
    try? PosixDirectory.removeEmpty(path)
}

/// A copy of a vault file, to be put back later, and the anchors beside it.
struct PosixCopy {
    private let vault: FilePath
    private let state: FilePath
    private let bytes: [UInt8]

    init(of vault: FilePath, state: FilePath) throws {
        self.vault = vault
        self.state = state
        let file = try PosixDirectory(vault.removingLastComponent())
            .open(vault.lastComponent?.string ?? "", .read)
        bytes = try file.read(try file.attributes().size, at: 0)
    }

    private var name: String { vault.lastComponent?.string ?? "" }

    /// Puts the copy at the vault's path, as a new file.
    func restore(vaultOnly: Bool) throws {
        let directory = try PosixDirectory(vault.removingLastComponent())
        let file = try directory.open("copy", .create)
        try file.write(bytes, at: 0)
        try directory.rename("copy", to: name, replacing: true)
        if !vaultOnly { try removeAnchors() }
    }

    /// Writes the copy beside the vault, under another name.
    func write(to name: String) throws {
        let file = try PosixDirectory(vault.removingLastComponent()).open(name, .create)
        try file.write(bytes, at: 0)
    }

    /// Forgets how far this device has seen the vault go.
    func removeAnchors() throws {
        let directory = try PosixDirectory(state)
        for name in try directory.names() where name.hasSuffix(".anchor") { try directory.remove(name) }
    }
}
