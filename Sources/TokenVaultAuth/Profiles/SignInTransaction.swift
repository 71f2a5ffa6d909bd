package import TokenVault
package import TokenVaultPlatform

/// How far a sign-in or a sign-out has come, for a program that is ended in the middle of it. Before the first of
/// these states nothing was given, or the provider's conformer knows.
package enum TransactionState: Sendable {
    /// The new session is stored, and the session before is being revoked.
    case storedUnrevoked
    /// The session is being deleted.
    case ending
    /// The session is deleted, and the provider is being told.
    case endedUnrevoked
    /// Nothing is left to be done.
    case settled
}

/// One sign-in: *requested → received → stored, revoked or reported*.
///
/// 1. Ask the provider, which asks the user.
/// 2. Store the profile and the session in one commit. While the storage is locked, this is tried for a minute.
/// 3. Revoke the session before, unless the new one lives in the same grant.
///
/// Tokens that cannot be stored are revoked, because they would be lost; what was stored of them all the same
/// is then undone. A cancellation of the task does the same. Nothing that the provider gave is forgotten
/// without a word in the outcome.
package struct SignInTransaction<Provider: SessionProvider>: Sendable {
    package let provider: Provider
    package let place: ProfileStore
    /// The name of the profile.
    package let name: String
    /// The policy of the items; `nil` to keep the present one.
    package var policy: AccessPolicy?
    package var deadline: Deadline?
    var clock = TransactionClock.machine
    /// Gets each state as it begins.
    package var entered: @Sendable (TransactionState) -> Void = { _ in }
    /// Gets the reason when the tokens cannot be stored yet.
    package var waiting: @Sendable (TokenError) -> Void = { _ in }

    package init(_ provider: Provider, _ place: ProfileStore, _ name: String) {
        self.provider = provider
        self.place = place
        self.name = name
    }

    /// The outcome of a sign-in.
    package enum Outcome: Sendable {
        /// The new session is stored.
        case signedIn(SignedIn, before: Previous, isOtherUser: Bool)
        /// The provider gave no tokens.
        case notAuthorized(Provider.Failure)
        /// The provider gave tokens that could not be stored.
        case notStored(TokenError, Revocation<Provider.Failure>, Undoing)
        /// The task was cancelled after the provider gave tokens.
        case cancelled(Revocation<Provider.Failure>, Undoing)
    }

    /// The session that the new one replaced.
    package enum Previous: Sendable {
        /// There was none.
        case none
        /// The session is left as it is: because of ``SignInSettings/keepsPrevious``, or because the new session
        /// would end with it.
        case kept
        /// The session is of another provider, or of one that is not known, which is not asked.
        case foreign
        /// The provider was asked to end the session.
        case ended(Revocation<Provider.Failure>, newer: ProfileStore.NewerTokens)
    }

    /// What became of stored items of tokens that were revoked.
    package enum Undoing: Sendable {
        /// Nothing of them is stored.
        case done
        /// They may be stored. The error is that of undoing it.
        case failed(TokenError)
        /// They may be stored when the storage answers.
        case underWay
    }

    /// Signs in with `settings`, and waits for the user for `limit` at most.
    package func run(_ settings: SignInSettings, within limit: Duration) async -> Outcome {
        let time = TransactionTime(until: deadline, clock: clock)
        let signedIn: SignedIn
        do throws(Provider.Failure) {
            signedIn = try await provider.authorize(settings, within: time.limit(limit))
        } catch {
            return .notAuthorized(error)
        }
        time.beginStoring()
        let storage = BoundedStorage(place.storage, time)
        let changes = ProfileChanges(storage, name)
        var before: ProfileStore.Contents?
        do throws(TokenError) {
            try await time.storing({ $0.isLocked }, waiting: waiting) { () async throws(TokenError) in
                try await changes.begin(signedIn, policy: policy, before: &before)
            }
        } catch {
            let revocation = await provider.revokeUnused(
                signedIn.tokens, of: signedIn.profile, until: deadline)
            let undoing = await undo(changes, storage, before, time)
            return Task.isCancelled
                ? .cancelled(revocation, undoing) : .notStored(error, revocation, undoing)
        }
        let previous = before?.session
        var isOtherUser = false
        if let user = previous?.user?.identifier, let now = signedIn.user?.identifier {
            isOtherUser = previous?.source == signedIn.profile.source && user != now
        }
        return .signedIn(
            signedIn, before: await endPrevious(previous, before?.profile, signedIn),
            isOtherUser: isOtherUser)
    }

    private func undo(
        _ changes: ProfileChanges, _ storage: BoundedStorage,
        _ before: ProfileStore.Contents?, _ time: TransactionTime
    ) async -> Undoing {
        guard storage.mayHaveCommitted, let before else { return .done }
        time.beginUndoing(within: .seconds(5))
        guard await storage.lateCommitsHaveEnded() else { return .underWay }
        do throws(TokenError) {
            try await changes.restore(before)
            return .done
        } catch {
            return .failed(error)
        }
    }

    private func endPrevious(
        _ session: KeptSession?, _ profile: StoredProfile?, _ new: SignedIn
    ) async -> Previous {
        guard let session else {
            entered(.settled)
            return .none
        }
        defer { entered(.settled) }
        if new.profile.settings.keepsPrevious { return .kept }
        guard let tokens = session.tokens, let profile = profile?.content,
            session.source == profile.source, profile.settings.issuer == new.profile.settings.issuer
        else { return .foreign }
        if new.tokens.isOfSameGrant(as: tokens) { return .kept }
        entered(.storedUnrevoked)
        let newer = place.newer(than: session, of: name)
        return .ended(
            await provider.revokeUnused(tokens, of: profile, until: deadline), newer: newer)
    }
}

extension TokenError {
    /// Whether the storage is locked.
    fileprivate var isLocked: Bool {
        if case .storage(let reason) = self { reason.code == .locked } else { false }
    }
}

extension TokenInfo {
    /// Whether revoking `other` certainly ends the session of these tokens. True when a token is the same, or when both
    /// ID tokens name the same session (`sid`, OpenID Connect Front-Channel Logout section 3). A provider may revoke
    /// all tokens of a grant with one of them (RFC 7009 section 2.1).
    func isOfSameGrant(as other: TokenInfo) -> Bool {
        if accessSecret == other.accessSecret { return true }
        if let refreshSecret, refreshSecret == other.refreshSecret { return true }
        guard let session = idToken.flatMap({ UnverifiedClaims($0) })?.session else { return false }
        return session == other.idToken.flatMap { UnverifiedClaims($0) }?.session
    }
}
