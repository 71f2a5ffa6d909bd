public import SystemPackage
internal import TokenVaultCrypto
internal import TokenVaultPlatform

extension VaultCopy {
    /// Puts this copy in the place of the vault at `path`, on purpose: from now on it is the vault, whatever was
    /// there and however far this device had seen the vault go.
    ///
    /// Every byte of the copy is checked first, values whose keys are not held by digest. Then a new file is
    /// written, with the sealed items as they are: a new life of the log, behind all that the copy, the anchor and
    /// the file in the place tell of. It takes the vault's name in one step, so that a crash leaves the one
    /// or the other, whole. What it replaces is kept beside it under the name that the report gives. Processes that
    /// have the vault open go on with the restored one; they are locked when it has another root.
    ///
    /// The copy must be unlocked (`locked`) by a slot that opens everything (`notPermitted`). `progress` gets
    /// bytes or items done and in all. Throws `corrupt` for a damaged copy, `wrongPassphrase` when the slot was
    /// removed before the copy was made, `alreadyExists` when another vault is in the place, `notAVault` when
    /// something else is, `duplicateVault` when this device knows the vault at yet another path, `noSpace`,
    /// `timedOut`. After these all is as it was; after `outcomeUnknown` a power cut may take the restoration back.
    public func restore(
        to path: FilePath, progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> RestoreReport {
        try during("restore") { () throws(TokenStorageError) in
            try restore(
                to: try VaultLocation.real(path, configuration: configuration, creating: true),
                progress: progress)
        }
    }

    package func restore(
        to place: VaultLocation, progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> RestoreReport {
        try during("restore") { () throws(TokenStorageError) in
            try VaultRestoration(copy: self, place: place, isAdopting: false, progress: progress).run()
        }
    }
}
