internal import Synchronization

extension BlockingFileVault {
    /// Takes in other processes' changes of the vault and its unlock methods, so that its status is current.
    /// Does not count as a use of an idle vault. Throws `closed`, `corrupt`, and the system's failures.
    ///
    /// With `thoroughly` false, the call only looks for another file in the vault's place: each read takes in
    /// the rest.
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
