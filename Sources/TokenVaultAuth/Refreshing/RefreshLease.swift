public import SystemPackage
package import TokenVault
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// What keeps the refreshes of an account apart, so that one refresh token is sent once.
///
/// With a file, the kernel does it: one byte of the file, chosen by the account, is locked while a refresh runs, and let
/// go of when its process ends, however that comes. Nothing is written to the file. Without one, the intent that is
/// stored before each request does it alone: it is waited for until it is gone or its time is over.
public struct RefreshLease: Sendable, Hashable {
    enum Place: Sendable, Hashable {
        case automatic
        case file(FilePath)
        case storedIntent
    }

    let place: Place

    /// A file `NAME.vault.lease` beside the vault, for storages of a vault file, the agent's too; the stored intent for
    /// others.
    public static let automatic = RefreshLease(place: .automatic)

    /// The file at `path`, which is made when it is missing: for storages that are no vault file, such as a keyring, with
    /// one path for all programs that use it.
    public static func file(_ path: FilePath) -> RefreshLease { RefreshLease(place: .file(path)) }

    /// The stored intent alone: for storages that several machines share. A process that was killed in the middle of a
    /// refresh keeps the others waiting until the time of its request is over.
    public static let storedIntent = RefreshLease(place: .storedIntent)

    /// The file for `storage`, if there is to be one.
    func file(for storage: any TokenStorage) -> FilePath? {
        switch place {
        case .automatic:
            (storage as? any VaultBacked).map { FilePath("\(Self.absolute($0.vaultPath)).lease") }
        case .file(let path): Self.absolute(path)
        case .storedIntent: nil
        }
    }

    /// Whether somebody refreshes `account` in `storage` now. False also when that cannot be known.
    package func isHeld(for account: String, in storage: any TokenStorage) -> Bool {
        let taker = LeaseTaker(self, storage: storage, account: account)
        guard let file = taker.file else { return false }
        do throws(SystemFailure) { return try ByteLock.take(file, byteAt: taker.offset) == nil } catch {
            return false
        }
    }

    /// The path from the root: a program may go to another directory later.
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
        // Length first, so that no two pairs of service and account are the same bytes.
        let name = Array("\(storage.service.utf8.count) \(storage.service)\(account)".utf8)
        offset = Int(truncatingIfNeeded: Hash.words(of: name).0 & (1 << 62 - 1))
    }

    /// The lease, once nobody else has it. Throws `timedOut` after `limit`, `storage` when the file cannot be used. The
    /// caller's cancellation does not matter.
    func take(within limit: Duration) async throws(TokenError) -> LeaseHold {
        try await Task.detached { () async -> Result<LeaseHold, TokenError> in
            do throws(TokenError) { return .success(try await taken(within: limit)) } catch {
                return .failure(error)
            }
        }.value.get()
    }

    private func taken(within limit: Duration) async throws(TokenError) -> LeaseHold {
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
            // A lock can only be asked for.
            try? await Task.sleep(for: min(pause, deadline.remaining))
            pause = min(pause * 2, .milliseconds(20))
        }
    }
}

/// A lease that is held until the last reference goes.
final class LeaseHold: Sendable {
    private let lock: ByteLock?

    init(lock: ByteLock?) { self.lock = lock }

    /// Names the lock, for the intents that are stored under it; `nil` without one. Whoever finds an intent of the lock that
    /// they hold themselves knows that its owner is gone.
    var name: String? { lock.map { "\($0.identity.device):\($0.identity.inode)" } }
}
