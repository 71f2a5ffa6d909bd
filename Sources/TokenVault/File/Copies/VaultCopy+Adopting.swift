internal import TokenVaultPlatform

extension VaultCopy {
    /// Makes the file at this path the vault from now on, where the same vault is at two paths. A new epoch
    /// of the log begins in the file, behind all that either of the two has seen, and this device remembers
    /// the path. The other file stays unchanged and is the copy from then on; the report names it. Nothing of
    /// it is taken over.
    ///
    /// A vault that is at one path only may be adopted too. The requirements and errors are those of
    /// ``restore(to:progress:)``, except for `duplicateVault`. Throws `readOnly` where the file cannot be
    /// replaced.
    public func adopt(progress: ((Int, Int) -> Void)? = nil) throws(TokenStorageError) -> RestoreReport {
        try during("adopt") { () throws(TokenStorageError) in
            // This device's state for the vault may have to be made.
            let place =
                location.absolutePath == nil
                ? location : try VaultLocation.real(path, configuration: configuration, creating: true)
            return try VaultRestoration(copy: self, place: place, isAdopting: true, progress: progress).run()
        }
    }
}
