import SystemPackage
import TokenVault

extension Session {
    /// The copy of a vault at `path`, unlocked with `known`, else with what was given, the keyring's key or what the person
    /// types.
    func openUnlockedCopy(
        at path: FilePath, with known: UnlockMethod? = nil
    ) throws(CommandFailure) -> VaultCopy {
        let configuration = try configuration
        let copy = try calling { () throws(TokenStorageError) in
            try VaultCopy.open(at: path, configuration: configuration)
        }
        if known == nil, unlock.isTerminal, copy.slots.contains(where: { $0.kind == .secretService }) {
            do throws(TokenStorageError) {
                try copy.unlock(from: console.keyring)
                return copy
            } catch {
                // A key that opened the copy once may be gone from the keyring: a person can type another.
                guard console.canAskForSecrets, copy.slots.contains(where: \.kind.isAttended) else {
                    throw CommandFailure(error)
                }
            }
        }
        let unlocking = { (method: UnlockMethod) throws(CommandFailure) in
            if case .passphrase = method { console.progress.show("Unlocking …") }
            defer { console.progress.clear() }
            try calling { () throws(TokenStorageError) in try copy.unlock(with: method) }
        }
        if let known {
            try unlocking(known)
        } else {
            try unlock.withUnlockMethod(console, opening: copy.slots, unlocking)
        }
        return copy
    }

    /// The vault, or a copy of it, which is only read; that it is one is told.
    func openVaultOrCopy() throws(CommandFailure) -> BlockingFileVault {
        try requireFile()
        var configuration = try configuration
        configuration.opensCopies = true
        let path = try vaultPath
        return try calling { () throws(TokenStorageError) in
            try BlockingFileVault.open(at: path, configuration: configuration)
        }
    }
}
