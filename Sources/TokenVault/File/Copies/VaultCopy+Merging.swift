internal import TokenVaultCrypto
internal import TokenVaultPlatform

extension VaultCopy {
    /// Takes what `other`, a copy of the same vault that was written to meanwhile, has into this file, which is in the vault's
    /// place. With `isRehearsal` nothing is written and the report says what would be.
    ///
    /// Both files have the newest of their common commits. An item that only one file has changed since is taken from that file,
    /// and a deletion too. An item that both have changed keeps this file's value, and the other's value is stored under a key
    /// of its own, `KEY (conflict GENERATION)`. Policies stay. Unlock methods are those of this file.
    ///
    /// The result descends from both files, so that every device that has seen either of them accepts it. Only when an item
    /// could not be taken (``MergeReport/remaining``) it descends from this file alone. The vault's file of before is kept beside it.
    ///
    /// Both must be unlocked (`locked`) by a slot that opens everything (`notPermitted`). `progress` gets items done and in all.
    /// Throws `unexpectedVault` for a copy of another vault, `invalidArgument` where the two have no commit in common, `forked`
    /// or `rolledBack` where neither has what this device has seen, `corrupt` for a damaged file, `conflict` when a file was
    /// replaced meanwhile, `noSpace`, `timedOut`. After these all is as it was; after `outcomeUnknown` a power cut may take the
    /// merge back.
    public func merge(
        _ other: VaultCopy, isRehearsal: Bool = false, progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> MergeReport {
        try during("merge") { () throws(TokenStorageError) in
            // What this device keeps for the vault may have to be made.
            let place =
                location.absolutePath == nil || isRehearsal
                ? location : try VaultLocation.real(path, configuration: configuration, creating: true)
            return try VaultMerge(
                ours: self, theirs: other, place: place, isRehearsal: isRehearsal, progress: progress
            ).run()
        }
    }
}
