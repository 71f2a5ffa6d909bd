internal import TokenVault

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// What a manager knows of its account without asking the storage.
struct SessionSnapshot: Sendable {
    enum Knowledge: Sendable {
        /// Nothing was read yet, or what was read may have changed.
        case unread
        /// It could not be read: why, and whether there is a session, if that could be.
        case unreadable(TokenError, hasSession: Bool?)
        /// Nobody is signed in.
        case signedOut
        case signedIn(StoredSession)
    }

    private let configuration: TokenManager.Configuration
    private(set) var knowledge: Knowledge = .unread
    /// Grows with every change: a read of the storage that began before it tells nothing.
    private(set) var epoch: UInt64 = 0
    /// How far this machine's clock was set ahead since the tokens came, in seconds.
    private(set) var shift = 0.0
    /// Each server's clock less this machine's when the first of its answers since the tokens came was seen, in seconds.
    private var baselines: [RequestOrigin: Double] = [:]
    private var accessToken: AccessToken?
    /// Until when the access token is good for longer than the buffer; `nil` for ever.
    private var freshUntil: Date?
    /// From when on it can be believed to be; `nil` for ever.
    private var freshSince: Date?
    /// The newest generation that was seen, of a record or of its end.
    private var generation: Generation?

    init(_ configuration: TokenManager.Configuration) { self.configuration = configuration }

    /// The session; `nil` when there is none, or that is not known.
    var session: StoredSession? {
        if case .signedIn(let session) = knowledge { session } else { nil }
    }

    /// The tokens, `nil` inside when nobody is signed in; `nil` when that is not known.
    var tokens: TokenInfo?? {
        switch knowledge {
        case .unread, .unreadable: nil
        case .signedOut: .some(nil)
        case .signedIn(let stored): .some(stored.record.isWithoutTokens ? nil : stored.record.tokens)
        }
    }

    /// What that means; `nil` when it is not known for the moment.
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

    /// The access token, if it is good for longer than the buffer at `now`.
    func token(at now: Date) -> AccessToken? {
        if let freshUntil, now >= freshUntil { return nil }
        if let freshSince, now < freshSince { return nil }
        return accessToken
    }

    /// Whether a record of that generation tells something new.
    func isNews(_ generation: Generation) -> Bool { self.generation.map { $0 < generation } ?? true }

    /// Takes a record that is stored. False when something newer is known.
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

    /// Takes what a read of the storage gave, `nil` for nothing, if nothing changed since `epoch`. What a read gives after
    /// all that is known is so, whatever the order of generations says: the storage may be another one by now.
    mutating func take(read stored: StoredSession?, since epoch: UInt64) {
        guard self.epoch == epoch else { return }
        generation = nil
        if let stored { take(stored) } else { end(nil) }
    }

    /// A read that began at `epoch` failed.
    mutating func fail(_ error: TokenError, hasSession: Bool?, since epoch: UInt64) {
        guard self.epoch == epoch else { return }
        forget(.unreadable(error, hasSession: hasSession))
    }

    /// A newer record is stored than the one that is known.
    mutating func expectNewer() {
        epoch += 1
        forget(.unread)
    }

    /// Nobody is signed in, since a commit that began at `epoch`, of generation `ended`, or of none since there was nothing
    /// to end.
    mutating func end(_ ended: Generation?, since epoch: UInt64) {
        if ended == nil, self.epoch != epoch { doubt() } else { end(ended) }
    }

    /// Nobody is signed in, since the commit of generation `ended`. False when something newer is known.
    @discardableResult
    mutating func end(_ ended: Generation?) -> Bool {
        if let ended, let generation, ended < generation { return false }
        epoch += 1
        generation = ended ?? generation
        forget(.signedOut)
        return true
    }

    /// What was known may not be so any more, not even the order of generations.
    mutating func doubt() {
        epoch += 1
        generation = nil
        forget(.unread)
    }

    /// Notes the clock of a server, `seconds` ahead of this machine's. One server's clock tells nothing of another's: what
    /// counts is that the difference has changed, which it does when this machine's clock is set.
    mutating func note(_ origin: RequestOrigin, ahead seconds: Double) {
        guard let baseline = baselines[origin] else {
            if baselines.count < 100 { baselines[origin] = seconds + shift }
            return
        }
        let moved = baseline - seconds
        // A header tells whole seconds, and the way takes its time: less than that is no difference.
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
