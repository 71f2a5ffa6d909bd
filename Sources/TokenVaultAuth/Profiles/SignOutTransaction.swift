internal import TokenVault
package import TokenVaultPlatform

/// One sign-out. The session is deleted first, so that it is gone even if the network fails or the program ends. Then
/// the transaction asks a provider that accepts revocations to end the session.
///
/// A cancellation of the task leaves a few seconds for telling the provider.
package struct SignOutTransaction<Provider: SessionProvider>: Sendable {
    package let provider: Provider
    package let place: ProfileStore
    /// The name of the profile.
    package let name: String
    /// Whether the profile is deleted as well.
    package var forgetsProfile = false
    package var deadline: Deadline?
    var clock = TransactionClock.machine
    /// Gets each state as it begins.
    package var entered: @Sendable (TransactionState) -> Void = { _ in }

    package init(_ provider: Provider, _ place: ProfileStore, _ name: String) {
        self.provider = provider
        self.place = place
        self.name = name
    }

    /// The outcome of a sign-out.
    package enum Outcome: Sendable {
        /// There was no session. Whether there was a profile.
        case notSignedIn(hadProfile: Bool)
        /// The session could not be deleted, and the provider was not told.
        case notEnded(TokenError)
        /// The task was cancelled, and the storage did not say whether the session is deleted.
        case cancelled
        /// The session is deleted, and the provider was asked to end it.
        case ended(Revocation<Provider.Failure>, newer: ProfileStore.NewerTokens)
        /// The session is deleted, and what was stored does not say which provider gave it.
        case endedWithoutProvider

        /// Whether the session is deleted.
        package var isEnded: Bool {
            switch self {
            case .ended, .endedWithoutProvider: true
            case .notSignedIn, .notEnded, .cancelled: false
            }
        }
    }

    /// Signs out.
    package func run() async -> Outcome {
        let time = TransactionTime(until: deadline, clock: clock)
        let changes = ProfileChanges(BoundedStorage(place.storage, time), name)
        var before: ProfileStore.Contents?
        entered(.ending)
        do throws(TokenError) {
            try await time.storing({ _ in false }) { () async throws(TokenError) in
                try await changes.end(forgetsProfile: forgetsProfile, before: &before)
            }
        } catch {
            if Task.isCancelled, error.leavesStorageUnknown { return .cancelled }
            entered(.settled)
            return .notEnded(error)
        }
        guard let session = before?.session else {
            entered(.settled)
            return .notSignedIn(hadProfile: before?.profile != nil)
        }
        entered(.endedUnrevoked)
        defer { entered(.settled) }
        let profile = before?.profile?.content
        guard let tokens = session.tokens, let profile, session.source == profile.source else {
            return .endedWithoutProvider
        }
        guard profile.offersRevocation else { return .ended(.notOffered, newer: .none) }
        let newer = place.newer(than: session, of: name)
        do throws(Provider.Failure) {
            let limit = Duration.seconds(Task.isCancelled ? 5 : 29)
            try await provider.revoke(tokens, of: profile, within: time.limit(limit))
            return .ended(.revoked, newer: newer)
        } catch {
            return .ended(.failed(error), newer: newer)
        }
    }
}

extension TokenError {
    /// Whether the storage did not say what became of a commit.
    fileprivate var leavesStorageUnknown: Bool {
        switch self {
        case .cancelled: true
        case .storage(let reason): reason.code == .outcomeUnknown || reason.code == .timedOut
        default: false
        }
    }
}
