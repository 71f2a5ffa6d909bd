internal import TokenVaultPlatform

extension VaultCopy {
    /// Makes the file at this path the vault from now on, where the same vault is at two paths: a new life of the log
    /// begins in it, behind what either of the two has seen, and this device remembers the path. The other file
    /// stays as it is and is the copy from then on; the report names it. Nothing of it is taken over.
    ///
    /// A vault that is at one path only may be adopted too. What must be unlocked, and what is thrown, is as for
    /// ``restore(to:progress:)``, but for `duplicateVault`; `readOnly` where the file cannot be replaced.
    public func adopt(progress: ((Int, Int) -> Void)? = nil) throws(TokenStorageError) -> RestoreReport {
        try during("adopt") { () throws(TokenStorageError) in
            // What this device keeps for the vault may have to be made.
            let place =
                location.absolutePath == nil
                ? location : try VaultLocation.real(path, configuration: configuration, creating: true)
            return try VaultRestoration(copy: self, place: place, isAdopting: true, progress: progress).run()
        }
    }
}
