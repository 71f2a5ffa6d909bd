internal import TokenVaultCrypto
internal import TokenVaultPlatform

extension VaultCopy {
    /// Merges `other`, a copy of the same vault that was written to meanwhile, into this file, which is in
    /// the vault's place. With `isRehearsal` nothing is written and the report says what would be.
    ///
    /// The merge starts from the newest commit that both files have. An item that only one file has changed
    /// since is taken from that file, and a deletion too. An item that both have changed keeps this file's
    /// value. The other file's value is stored under its own key, `KEY (conflict GENERATION)`. Policies stay.
    /// Unlock methods are those of this file.
    ///
    /// The result descends from both files, so that every device that has seen either of them accepts it.
    /// When an item could not be taken (``MergeReport/remaining``), a device that has seen it accepts the result
    /// only once it has merged its own file. The vault's previous file is kept beside the new one.
    ///
    /// Both must be unlocked (`locked`) by a slot that opens everything (`notPermitted`). `progress` gets the
    /// items done and the total. Throws `unexpectedVault` for a copy of another vault, `invalidArgument`
    /// where the two have no commit in common, and `corrupt` for a damaged file. Throws `forked`
    /// where neither file has all that this device has seen. Throws `conflict` when a file was replaced meanwhile,
    /// or the copy's keys were rotated; also `tooManySlots`, `noSpace`, `timedOut`. After these errors nothing has changed; after
    /// `outcomeUnknown` a power cut may take the merge back.
    public func merge(
        _ other: VaultCopy, isRehearsal: Bool = false, progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> MergeReport {
        try during("merge") { () throws(TokenStorageError) in
            // This device's state for the vault may have to be made.
            let place =
                location.absolutePath == nil || isRehearsal
                ? location : try VaultLocation.real(path, configuration: configuration, creating: true)
            return try VaultMerge(
                ours: self, theirs: other, place: place, isRehearsal: isRehearsal, progress: progress
            ).run()
        }
    }
}
