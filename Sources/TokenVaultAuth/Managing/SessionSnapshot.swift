internal import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The state of an account that a manager knows without reading the storage.
struct SessionSnapshot: Sendable {
    enum Knowledge: Sendable {
        /// Nothing was read yet, or the stored state may have changed.
        case unread
        /// The state could not be read. The values are the error and, if known, whether there is a session.
        case unreadable(TokenError, hasSession: Bool?)
        /// The account is signed out.
        case signedOut
        case signedIn(StoredSession)
    }

    private let configuration: TokenManager.Configuration
    private(set) var knowledge: Knowledge = .unread
    /// The number of changes so far. The result of a storage read that began before the last change is
    /// ignored.
    private(set) var epoch: UInt64 = 0
    /// How far this machine's clock was set ahead since the tokens arrived, in seconds.
    private(set) var shift = 0.0
    /// Each server's clock minus this machine's clock, in seconds. Measured at the first response of that
    /// server since the tokens arrived.
    private var baselines: [RequestOrigin: Double] = [:]
    private var accessToken: AccessToken?
    /// The time until which the access token is good for longer than the buffer; `nil` for no limit.
    private var freshUntil: Date?
    /// The time from which `freshUntil` can be trusted; `nil` for no limit.
    private var freshSince: Date?
    /// The newest generation seen, of a record or of its deletion.
    private var generation: Generation?

    init(_ configuration: TokenManager.Configuration) { self.configuration = configuration }

    /// The session; `nil` when there is none, or that is not known.
    var session: StoredSession? {
        if case .signedIn(let session) = knowledge { session } else { nil }
    }

    /// The tokens, or an inner `nil` when the account is signed out. The outer `nil` means not known.
    var tokens: TokenInfo?? {
        switch knowledge {
        case .unread, .unreadable: nil
        case .signedOut: .some(nil)
        case .signedIn(let stored): .some(stored.record.isWithoutTokens ? nil : stored.record.tokens)
        }
    }

    /// The state to publish; `nil` when it is not known at the moment.
    var state: AuthState? {
        switch knowledge {
        case .unread: return nil
        case .unreadable(.storage(let reason), let hasSession) where reason.code == .locked:
            return .locked(wasSignedIn: hasSession)
        case .unreadable(let error, _): return .unavailable(error)
        case .signedOut: return .signedOut
        case .signedIn(let stored):
            if let user = stored.record.user, user.isGuest { return .guest(user) }
            return .signedIn(stored.record.user)
        }
    }

    /// Returns the access token if it is good for longer than the buffer at `now`; `nil` otherwise.
    func token(at now: Date) -> AccessToken? {
        if let freshUntil, now >= freshUntil { return nil }
        if let freshSince, now < freshSince { return nil }
        return accessToken
    }

    /// Whether a record of that generation is newer than the known one.
    func isNews(_ generation: Generation) -> Bool { self.generation.map { $0 < generation } ?? true }

    /// Accepts a stored record. Returns false when a newer one is known.
    @discardableResult
    mutating func take(_ stored: StoredSession) -> Bool {
        if let generation, stored.generation < generation { return false }
        let known = accessToken
        epoch += 1
        generation = stored.generation
        knowledge = .signedIn(stored)
        let token = stored.record.isWithoutTokens ? nil : AccessToken(stored.record)
        accessToken = token
        if known != nil, known != token {
            shift = 0
            baselines = [:]
        }
        judge(stored.record)
        return true
    }

    /// Accepts the result of a storage read, `nil` for no record, if nothing changed since `epoch`. Ignores
    /// the order of generations: the storage may have been replaced by another one.
    mutating func take(read stored: StoredSession?, since epoch: UInt64) {
        guard self.epoch == epoch else { return }
        generation = nil
        if let stored { take(stored) } else { end(nil) }
    }

    /// Notes that a read that began at `epoch` failed.
    mutating func fail(_ error: TokenError, hasSession: Bool?, since epoch: UInt64) {
        guard self.epoch == epoch else { return }
        forget(.unreadable(error, hasSession: hasSession))
    }

    /// Notes that a newer record is stored than the known one.
    mutating func expectNewer() {
        epoch += 1
        forget(.unread)
    }

    /// Notes that the account is signed out after a commit that began at `epoch`. `ended` is the generation
    /// of that commit; `nil` when there was no session to end.
    mutating func end(_ ended: Generation?, since epoch: UInt64) {
        if ended == nil, self.epoch != epoch { doubt() } else { end(ended) }
    }

    /// Notes that the account is signed out since the commit of generation `ended`. Returns false when a
    /// newer record is known.
    @discardableResult
    mutating func end(_ ended: Generation?) -> Bool {
        if let ended, let generation, ended < generation { return false }
        epoch += 1
        generation = ended ?? generation
        forget(.signedOut)
        return true
    }

    /// Forgets the known state, including the order of generations: all of it may have changed.
    mutating func doubt() {
        epoch += 1
        generation = nil
        forget(.unread)
    }

    /// Notes that the clock of a server is `seconds` ahead of this machine's clock. The clocks of two servers
    /// are not compared. Only a change of one server's difference counts: it means that this machine's clock
    /// was set.
    mutating func note(_ origin: RequestOrigin, ahead seconds: Double) {
        guard let baseline = baselines[origin] else {
            if baselines.count < 100 { baselines[origin] = seconds + shift }
            return
        }
        let moved = baseline - seconds
        // The header has whole seconds and the network adds a delay, so a smaller difference is ignored.
        guard moved.isFinite, abs(moved - shift) >= 5 else { return }
        shift = moved
        if let session { judge(session.record) }
    }

    private mutating func judge(_ record: SessionRecord) {
        let judgement = TokenExpiryPolicy(configuration, at: Date(timeIntervalSince1970: 0), shift: shift)
        (freshSince, freshUntil) = (judgement.freshSince(record), judgement.freshUntil(record))
    }

    private mutating func forget(_ knowledge: Knowledge) {
        self.knowledge = knowledge
        accessToken = nil
        (freshSince, freshUntil) = (nil, nil)
    }
}
