internal import TokenVaultCore
internal import TokenVaultPlatform

// Reading without a lock: an oddity that stays is damage, and an oddity that changes is a write under way.
extension LogLoader {
    /// The result of a look at the log.
    private enum Sight: Equatable {
        case ended(tail: Int, chain: Digest, stop: ScanEnd.Stop)
        case failed(TokenStorageError.Code, TokenStorageError.Reason?)
    }

    /// Returns the state of the vault, without its lock. Changes nothing.
    func loadWithoutLock(
        _ file: any DiskFile, seen: UInt64?, observer: Observer
    ) throws(TokenStorageError) -> LogState {
        // A write under way must not pass for damage because little time is left.
        let deadline = Deadline(after: max(lockTimeout.remaining, .milliseconds(100)))
        var odd = OddSight<Sight>(until: deadline)
        var file = file
        while true {
            let anchored = try anchor.read()
            let sight: Sight
            let result = Result { () throws(TokenStorageError) in
                try read(file, .byIndex(seen: seen), anchored: anchored, observer: observer)
            }
            switch result {
            case .success(let loaded):
                if loaded.stop == .clean { return loaded.state }
                sight = .ended(tail: loaded.state.tail, chain: loaded.state.chain, stop: loaded.stop)
            case .failure(let error):
                guard error.code.mayBeOfOldFile else { throw error }
                sight = .failed(error.code, error.reason)
            }
            if try !isAtPath(file) {
                // An old file is rightly older than the anchor.
                file = try openReplacement()
                odd.forget()
            }
            guard try odd.isSettled(sight, of: file) else { continue }
            let loaded = try result.get()
            if case .failing(let place) = loaded.stop {
                try TailClassifier(file: loaded.state.file, codec: codec).requireTorn(at: place)
            }
            return loaded.state
        }
    }
}
