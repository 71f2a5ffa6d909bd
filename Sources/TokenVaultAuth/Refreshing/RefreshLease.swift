public import SystemPackage
package import TokenVault
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Separates the refreshes of an account, so that one refresh token is sent once.
///
/// With a file, the kernel separates the refreshes. One byte of the file, chosen by the account, is locked
/// while a refresh runs. The kernel releases the lock when the process ends, for any reason. Nothing is
/// written to the file.
///
/// Without a file, only the intent that is stored before each request separates the refreshes. Another
/// process waits until the intent is gone or its time is over.
public struct RefreshLease: Sendable, Hashable {
    enum Place: Sendable, Hashable {
        case automatic
        case file(FilePath)
        case storedIntent
    }

    let place: Place

    /// A file `NAME.vault.lease` beside the vault, for storages of a vault file, including those of the
    /// agent. The stored intent for other storages.
    public static let automatic = RefreshLease(place: .automatic)

    /// Returns a lease on the file at `path`, which is created when it is missing. For storages without a
    /// vault file, such as a keyring; all programs that use the storage need the same path.
    public static func file(_ path: FilePath) -> RefreshLease { RefreshLease(place: .file(path)) }

    /// The stored intent alone: for storages that several machines share. If a process is killed in the
    /// middle of a refresh, the others wait until the time of its request is over.
    public static let storedIntent = RefreshLease(place: .storedIntent)

    /// Returns the path of the lease file for `storage`; `nil` if there is to be none.
    func file(for storage: any TokenStorage) -> FilePath? {
        switch place {
        case .automatic:
            (storage as? any VaultBacked).map { FilePath("\(Self.absolute($0.vaultPath)).lease") }
        case .file(let path): Self.absolute(path)
        case .storedIntent: nil
        }
    }

    /// Whether a process refreshes `account` in `storage` now. False also when that cannot be determined.
    package func isHeld(for account: String, in storage: any TokenStorage) -> Bool {
        let taker = LeaseTaker(self, storage: storage, account: account)
        guard let file = taker.file else { return false }
        do throws(SystemFailure) { return try ByteLock.take(file, byteAt: taker.offset) == nil } catch {
            return false
        }
    }

    /// Returns the absolute path, since a program may change its working directory later.
    private static func absolute(_ path: FilePath) -> FilePath {
        guard path.isRelative, let here = try? PosixDirectory(".").absolutePath else { return path }
        return here.pushing(path)
    }
}

/// Takes the lease of one account.
struct LeaseTaker: Sendable {
    let file: FilePath?
    let offset: Int

    init(_ lease: RefreshLease, storage: any TokenStorage, account: String) {
        file = lease.file(for: storage)
        // The length comes first, so that no two pairs of service and account give the same bytes.
        let name = Array("\(storage.service.utf8.count) \(storage.service)\(account)".utf8)
        offset = Int(truncatingIfNeeded: Hash.words(of: name).0 & (1 << 62 - 1))
    }

    /// Returns the lease as ``taken(within:)``, and ignores the caller's cancellation.
    func take(within limit: Duration) async throws(TokenError) -> LeaseHold {
        try await Task.detached { () async -> Result<LeaseHold, TokenError> in
            do throws(TokenError) { return .success(try await taken(within: limit)) } catch {
                return .failure(error)
            }
        }.value.get()
    }

    /// Returns the lease once no other process has it. Throws `timedOut` after `limit`, `cancelled`, and
    /// `storage` when the file cannot be used.
    func taken(within limit: Duration) async throws(TokenError) -> LeaseHold {
        guard let file else { return LeaseHold(lock: nil) }
        let deadline = Deadline(after: limit)
        var pause = Duration.milliseconds(1)
        while true {
            do throws(SystemFailure) {
                if let lock = try ByteLock.take(file, byteAt: offset) { return LeaseHold(lock: lock) }
            } catch {
                throw .storage(
                    TokenStorageError(
                        .unavailable, operation: "refresh", backend: "auth", reason: .leaseFile(.init(error)))
                )
            }
            if deadline.hasPassed { throw .timedOut }
            if Task.isCancelled { throw .cancelled }
            // The lock can only be polled.
            try? await Task.sleep(for: min(pause, deadline.remaining))
            pause = min(pause * 2, .milliseconds(20))
        }
    }
}

/// A lease that is held until the last reference is released.
final class LeaseHold: Sendable {
    private let lock: ByteLock?

    init(lock: ByteLock?) { self.lock = lock }

    /// The name of the lock, for the intents that are stored under it; `nil` without a lock. An intent with
    /// the name of a lock that is held here has an owner that has ended.
    var name: String? { lock.map { "\($0.identity.device):\($0.identity.inode)" } }
}
