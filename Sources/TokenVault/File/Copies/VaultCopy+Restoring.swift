public import SystemPackage
internal import TokenVaultCrypto
internal import TokenVaultPlatform

extension VaultCopy {
    /// Puts this copy in the place of the vault at `path`, on purpose. From now on it is the vault, whatever
    /// was there and however far this device had seen the vault go.
    ///
    /// Every byte of the copy is checked first; values whose keys are not held are checked by digest. Then a
    /// new file is written, with the items still sealed, in a new epoch of the log. That epoch is behind
    /// everything in the copy, the anchor and the file in the place. The new file takes the vault's name in
    /// one step, so that a crash leaves one file or the other, whole. The replaced file is kept beside it
    /// under the name in the report. Processes that have the vault open go on with the restored vault; they
    /// are locked when it has another root key.
    ///
    /// The copy must be unlocked (`locked`) by a slot that opens everything (`notPermitted`). `progress` gets
    /// the bytes or items done and the total. Throws `corrupt` for a damaged copy, and `wrongPassphrase` when
    /// the slot was removed before the copy was made. Throws `alreadyExists` when another vault is in the
    /// place, and `notAVault` when another kind of file is. Throws `duplicateVault` when this device knows
    /// the vault at yet another path, `noSpace`, `timedOut`. After these errors nothing has changed; after
    /// `outcomeUnknown` a power cut may take the restoration back.
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
