package import TokenVault
internal import TokenVaultCrypto

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// Profiles and their sessions in a storage. A profile and its session are stored in one commit, so one of two
/// sign-ins at the same time wins with both.
///
/// The functions throw `storage` of ``TokenError`` when the storage could not be read or written: `locked` when
/// it is locked, and `outcomeUnknown` when a commit may have been stored.
package struct ProfileStore: Sendable {
    /// The prefix of a profile's key. The key of its session is `auth/session/` and the name, as a
    /// `TokenManager` stores it.
    package static let profiles = "profile/"

    package let storage: any TokenStorage
    /// The same storage, for programs that read without tasks.
    package let blocking: any BlockingTokenStorage
    /// The lease that separates renewals in several processes.
    package let lease: RefreshLease

    /// The contents under a profile's name.
    package typealias Contents = (profile: StoredProfile?, session: KeptSession?)

    package init(
        _ storage: any TokenStorage, blocking: any BlockingTokenStorage, lease: RefreshLease = .automatic
    ) {
        self.storage = storage
        self.blocking = blocking
        self.lease = lease
    }

    /// Returns the key of the profile `name`.
    package static func key(of name: String) -> TokenKey { TokenKey(profiles + name) }

    /// Returns the name of the profile at `key`. Works by bytes, because the name may begin with a character
    /// that combines with the slash.
    package static func name(of key: TokenKey) -> String {
        String(decoding: key.name.utf8.dropFirst(profiles.utf8.count), as: UTF8.self)
    }

    /// Returns the profile with that name; `nil` when there is none.
    package func profile(_ name: String) throws(TokenError) -> StoredProfile? {
        do throws(TokenStorageError) {
            return try blocking.item(for: Self.key(of: name)).map(StoredProfile.init)
        } catch {
            throw .storage(error)
        }
    }

    /// Returns the session of the profile with that name; `nil` without a session.
    package func session(_ name: String) throws(TokenError) -> KeptSession? {
        try KeptSession.read(name, in: blocking)
    }

    /// The fate of tokens that are newer than those of a session.
    package enum NewerTokens: Sendable {
        /// There are no newer tokens.
        case none
        /// The provider may have issued newer tokens that were lost.
        case lost
        /// Another program may be waiting for newer tokens and revokes them on arrival. Whether that program
        /// runs until then is unknown.
        case awaited
    }

    /// Returns the fate of tokens that are newer than those of `session`, which was the profile's session.
    package func newer(than session: KeptSession, of name: String) -> NewerTokens {
        guard session.mayBeOutdated else { return .none }
        return session.mayBeRenewing && lease.isHeld(for: name, in: storage) ? .awaited : .lost
    }
}

/// The changes of a transaction, in `storage`, which bounds their time.
struct ProfileChanges: Sendable {
    let storage: any TokenStorage
    let name: String
    /// The identifier of the session that a sign-in stores.
    private let session = Random.name()

    init(_ storage: any TokenStorage, _ name: String) {
        self.storage = storage
        self.name = name
    }

    private static var rounds: Int { 100 }

    /// Returns the present contents.
    func contents() async throws(TokenError) -> ProfileStore.Contents {
        do throws(TokenStorageError) {
            let profile = try await storage.item(for: ProfileStore.key(of: name))
            let session = try await storage.item(for: SessionStore.key(of: name))
            return (profile.map(StoredProfile.init), session.map(KeptSession.init))
        } catch {
            throw .storage(error)
        }
    }

    /// Stores a profile and the session of the same sign-in. Without `policy`, each item keeps its own. Sets
    /// `before` to the contents that are being replaced.
    ///
    /// Throws `malformed` for tokens, a type or scopes that no header can carry.
    func begin(
        _ signedIn: SignedIn, policy: AccessPolicy?, before: inout ProfileStore.Contents?
    ) async throws(TokenError) {
        try await changing { (known) throws(TokenError) in
            // An earlier attempt may have stored the session; what it replaced counts.
            if !isStored(known) { before = known }
            let session = try KeptSession.beginning(
                session, with: signedIn.tokens, user: signedIn.user, from: signedIn.profile.source, at: name,
                policy: policy ?? known.profile?.policy, where: storage.supportedPolicies,
                replacing: known.session, now: Date())
            let stored: Secret
            do throws(TokenStorageError) { stored = try Secret(encoding: signedIn.profile) } catch {
                throw .storage(error)
            }
            let expected = known.profile.map { TokenChange.Expectation.generation($0.generation) }
            return session + [
                .store(
                    stored, for: ProfileStore.key(of: name), details: TokenDetails(policy: policy),
                    expecting: expected ?? .absent)
            ]
        } isDone: {
            isStored($0)
        }
    }

    /// Restores `before`, if the session that ``begin(_:policy:before:)`` stored is still there. Another process
    /// may have changed it meanwhile; then its change counts.
    func restore(_ before: ProfileStore.Contents) async throws(TokenError) {
        let now = try await contents()
        guard let session = now.session, isStored(now) else { return }
        var changes =
            before.session?.returning(to: name, insteadOf: session.generation) ?? session.ending(at: name)
        if let profile = now.profile {
            let (key, expected) = (
                ProfileStore.key(of: name), TokenChange.Expectation.generation(profile.generation)
            )
            changes.append(
                before.profile.map {
                    .store(
                        $0.secret, for: key, details: TokenDetails(policy: $0.policy), expecting: expected)
                } ?? .delete(key, expecting: expected))
        }
        do throws(TokenStorageError) { _ = try await storage.commit(changes) } catch {
            if error.code != .conflict, error.code != .notFound { throw .storage(error) }
        }
    }

    /// Deletes the session, and with `forgetsProfile` the profile. Sets `before` to the contents that are being
    /// deleted.
    func end(forgetsProfile: Bool, before: inout ProfileStore.Contents?) async throws(TokenError) {
        try await changing { known in
            // After a commit of unknown outcome, the session that it deleted counts.
            if known.session != nil || before?.session == nil { before = known }
            var changes = known.session?.ending(at: name) ?? []
            if forgetsProfile, let profile = known.profile {
                changes.append(
                    .delete(ProfileStore.key(of: name), expecting: .generation(profile.generation)))
            }
            return changes
        } isDone: {
            $0.session == nil && !(forgetsProfile && $0.profile != nil)
        }
    }

    private func isStored(_ contents: ProfileStore.Contents) -> Bool {
        contents.session?.identifier == session
    }

    /// Applies the changes to the contents, and starts again when another process changes them meanwhile. If
    /// the outcome is unknown, `isDone` decides from the contents that are there then.
    private func changing(
        _ changesOf: (ProfileStore.Contents) throws(TokenError) -> [TokenChange],
        isDone: (ProfileStore.Contents) -> Bool
    ) async throws(TokenError) {
        for _ in 0..<Self.rounds {
            let changes = try changesOf(try await contents())
            guard !changes.isEmpty else { return }
            do throws(TokenStorageError) {
                _ = try await storage.commit(changes)
                return
            } catch {
                switch error.code {
                case .conflict, .notFound: continue
                case .outcomeUnknown:
                    guard let now = try? await contents(), isDone(now) else { throw .storage(error) }
                    return
                default: throw .storage(error)
                }
            }
        }
        throw .storage(TokenStorageError(.conflict, operation: "sign in", backend: "auth"))
    }
}
