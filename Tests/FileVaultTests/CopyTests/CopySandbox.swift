import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

extension Sandbox {
    /// A vault that the key file opens, with these items.
    func made(_ items: [String: String] = ["a": "first a", "b": "first b"]) throws -> BlockingFileVault {
        let vault = try BlockingFileVault.create(
            at: self.vault, unlockMethod: keyFile, configuration: configuration)
        for (key, value) in items.sorted(by: { $0.key < $1.key }) {
            try vault.storage(service: "s").store(token: value, for: TokenKey(key))
        }
        return vault
    }

    /// The vault, or the file beside it called `name`, unlocked.
    func opened(_ name: String? = nil, readingCopies: Bool = false) throws -> BlockingFileVault {
        var configuration = configuration
        configuration.allowsOpeningCopies = readingCopies
        let vault = try BlockingFileVault.open(at: path(of: name), configuration: configuration)
        try vault.unlock(with: keyFile)
        return vault
    }

    func copy(_ name: String?) throws -> VaultCopy {
        let copy = try VaultCopy.open(at: path(of: name), configuration: configuration)
        try copy.unlock(with: keyFile)
        return copy
    }

    func path(of name: String?) -> FilePath {
        name.map { vault.removingLastComponent().appending($0) } ?? vault
    }

    /// Copies the vault's bytes to a file beside it.
    func keepCopy(as name: String) throws {
        try PosixCopy(of: vault, state: path.appending("state")).write(to: name)
    }

    func bytes(of name: String? = nil) throws -> [UInt8] {
        try SmallFile.read(path(of: name), limit: 64 << 20).bytes
    }

    func write(_ bytes: [UInt8], to name: String? = nil) throws {
        let directory = try PosixDirectory(vault.removingLastComponent())
        let name = name ?? vault.lastComponent?.string ?? ""
        let file = try (try? directory.open(name, .readWrite)) ?? directory.open(name, .create)
        try file.resize(to: 0)
        try file.write(bytes, at: 0)
    }

    var names: Set<String> {
        get throws { Set(try PosixDirectory(vault.removingLastComponent()).names()) }
    }
}

/// What a call fails with; `nil` when it does not.
func failure(_ body: () throws -> Void) -> TokenStorageError? {
    do {
        try body()
        return nil
    } catch {
        return error as? TokenStorageError
            ?? TokenStorageError(
                .internalError, operation: "", backend: "",
                reason: .other(explanation: "\(error)", advice: nil))
    }
}

/// The values of the items of service "s".
func values(in vault: BlockingFileVault) throws -> [String: String] {
    var values: [String: String] = [:]
    for item in try vault.storage(service: "s").list().items {
        values[item.key.name] = try vault.storage(service: "s").retrieve(for: item.key)
    }
    return values
}
