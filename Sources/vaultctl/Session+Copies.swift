import ProgramSupport
import SystemPackage
import TokenVault

extension Session {
    /// Returns the copy of a vault at `path`, unlocked with `known`. Without `known`, uses the given unlock
    /// method, the keyring's key or a prompt.
    func openUnlockedCopy(
        at path: FilePath, with known: UnlockMethod? = nil
    ) throws(CommandFailure) -> VaultCopy {
        let configuration = try configuration
        let copy = try calling { () throws(TokenStorageError) in
            try VaultCopy.open(at: path, configuration: configuration)
        }
        try unlockTogether([copy], with: known)
        return copy
    }

    /// Returns the vault's file and a copy of it, unlocked with the same method.
    func openUnlockedCopies(
        _ path: FilePath, _ other: FilePath
    ) throws(CommandFailure) -> (VaultCopy, VaultCopy) {
        let configuration = try configuration
        let vault = try calling { () throws(TokenStorageError) in
            try VaultCopy.open(at: path, configuration: configuration)
        }
        let copy: VaultCopy
        do throws(TokenStorageError) {
            copy = try VaultCopy.open(at: other, configuration: configuration)
        } catch {
            var failure = CommandFailure(error)
            if error.code == .notAVault {
                failure.happened = "the copy is not a vault"
                failure.advice = "check its path"
            }
            throw failure
        }
        try unlockTogether([vault, copy], with: nil)
        return (vault, copy)
    }

    /// Unlocks copies of one vault with `known`, or with the unlock method of the first copy.
    private func unlockTogether(
        _ copies: [VaultCopy], with known: UnlockMethod?
    ) throws(CommandFailure) {
        let slots = copies.first?.slots ?? []
        if known == nil, unlock.isTerminal, slots.contains(where: { $0.kind == .secretService }) {
            do throws(TokenStorageError) {
                for copy in copies { try copy.unlock(from: console.keyring) }
                return
            } catch {
                // The keyring may have lost the key of the copy, so the user can type another.
                guard console.canAskForSecrets, slots.contains(where: \.kind.isAttended) else {
                    throw CommandFailure(error)
                }
            }
        }
        let unlocking = { (method: UnlockMethod) throws(CommandFailure) in
            if case .passphrase = method { console.progress.show("Unlocking …") }
            defer { console.progress.clear() }
            for (number, copy) in copies.enumerated() {
                do throws(TokenStorageError) {
                    try copy.unlock(with: method)
                } catch {
                    var failure = CommandFailure(error)
                    if number > 0, error.code == .wrongPassphrase {
                        failure.happened = "this opens the vault, but not the copy"
                        failure.advice =
                            "use what opens both, as the recovery key may, or give the vault the copy's passphrase first"
                    }
                    throw failure
                }
            }
        }
        if let known {
            try unlocking(known)
        } else {
            try unlock.withUnlockMethod(console, opening: slots, unlocking)
        }
    }

    /// Returns the vault, or a read-only copy of it. A note reports that it is a copy.
    func openVaultOrCopy() throws(CommandFailure) -> BlockingFileVault {
        try requireFile()
        var configuration = try configuration
        configuration.allowsOpeningCopies = true
        let path = try vaultPath
        return try calling { () throws(TokenStorageError) in
            try BlockingFileVault.open(at: path, configuration: configuration)
        }
    }
}
