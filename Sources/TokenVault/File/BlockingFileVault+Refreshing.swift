internal import Synchronization

extension BlockingFileVault {
    /// Takes in what other processes changed of the vault and its unlock methods, so that what it says of itself is as it
    /// is now. No use that an idle vault counts. Throws `closed`, `corrupt`, and what the system failed with.
    ///
    /// With `thoroughly` false only another file in the vault's place is looked for: each read takes in the rest.
    package func refresh(thoroughly: Bool = true) throws(TokenStorageError) {
        try during("status") { () throws(TokenStorageError) in
            try checkUsable()
            guard let session = state.withLock({ $0.session }) else { return }
            guard thoroughly else { return try session.log.lookAtPlace() }
            try session.log.lookAtOthers()
            try session.refreshKeys()
        }
    }
}
