import ProgramSupport
import SystemPackage
import TokenVault

extension Session {
    /// Returns the copy of a vault at `path`, unlocked with `known`. Without `known`, uses the given unlock
    /// method, the keyring's key or a prompt.
    func openUnlockedCopy(
        at path: FilePath, with known: UnlockMethod? = nil
    ) throws(CommandFailure) -> VaultCopy {
        let copy = try openCopy(at: path)
        try unlockTogether([copy], with: known)
        return copy
    }

    /// Returns the vault's file or a copy of it, locked.
    private func openCopy(at path: FilePath) throws(CommandFailure) -> VaultCopy {
        let (isVault, configuration) = (try vaultPath == path, try configuration)
        do throws(TokenStorageError) {
            return try VaultCopy.open(at: path, configuration: configuration)
        } catch {
            var failure = CommandFailure(error)
            if error.code == .notAVault, !isVault {
                failure.happened = "the copy is not a vault"
                failure.advice = "check its path"
            }
            throw failure
        }
    }

    /// Returns the vault's file and a copy of it, unlocked with the same method, or the copy with its own.
    func openUnlockedCopies(
        _ path: FilePath, _ other: FilePath, _ method: UnlockMethod?
    ) throws(CommandFailure) -> (VaultCopy, VaultCopy) {
        let configuration = try configuration
        let vault = try calling { () throws(TokenStorageError) in
            try VaultCopy.open(at: path, configuration: configuration)
        }
        let copy = try openCopy(at: other)
        guard vault.identifier == copy.identifier else {
            throw CommandFailure(
                TokenStorageError(
                    .unexpectedVault, operation: "merge", backend: "file",
                    reason: .copyOfAnotherVault(path: other.string)))
        }
        try unlockTogether(method == nil ? [vault, copy] : [vault], with: nil)
        if let method {
            do {
                try unlockTogether([copy], with: method)
            } catch {
                throw error.cause?.code == .wrongPassphrase ? Self.refusedByCopy(error) : error
            }
        }
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
                    guard number > 0, error.code == .wrongPassphrase else { throw CommandFailure(error) }
                    try askForCopy(copy, CommandFailure(error))
                }
            }
        }
        if let known {
            try unlocking(known)
        } else {
            try unlock.withUnlockMethod(console, opening: slots, unlocking)
        }
    }

    /// Unlocks a copy that what opens the vault does not open, with its own passphrase. Throws `refused`, which names the
    /// options to give, where the user cannot be asked.
    private func askForCopy(_ copy: VaultCopy, _ refused: CommandFailure) throws(CommandFailure) {
        var failure = Self.refusedByCopy(refused)
        failure.happened = "the unlock method opens the vault, but not the copy"
        guard unlock.isTerminal, let passphrase = try console.askHidden("Passphrase of the copy: ") else {
            throw failure
        }
        try calling { () throws(TokenStorageError) in try copy.unlock(with: .passphrase(passphrase)) }
    }

    /// Returns the failure of an unlock method that does not open the copy, with the options that name another.
    private static func refusedByCopy(_ refused: CommandFailure) -> CommandFailure {
        var failure = refused
        failure.happened = "the copy's passphrase or key is wrong"
        failure.advice = "give what opened the copy: --copy-passphrase-file or --copy-key-file"
        return failure
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
