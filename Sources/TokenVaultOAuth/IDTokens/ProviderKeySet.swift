#if OAuth
internal import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The keys of a provider. They are fetched at first use, when a token names an unknown key, and when they
/// are old. A pause between two fetches limits the requests that tokens with made-up key names can cause.
actor ProviderKeySet {
    typealias Fetch = @Sendable () async -> Result<[ProviderKey], OAuthError>

    private let fetch: Fetch
    private let clock: @Sendable () -> Date
    private let coolDown: Double
    private let longestAge: Double
    private var keys: [ProviderKey] = []
    private var fetched: Date?
    private var tried: Date?
    private var failure: OAuthError?
    private var isFetching = false
    private var waiting: [UInt64: CheckedContinuation<Void, Never>] = [:]
    private var waitersSoFar: UInt64 = 0

    init(
        coolDown: Duration, longestAge: Duration, clock: @escaping @Sendable () -> Date,
        fetch: @escaping Fetch
    ) {
        self.coolDown = coolDown.inSeconds
        self.longestAge = longestAge.inSeconds
        self.clock = clock
        self.fetch = fetch
    }

    /// The largest number of keys that are tried for one token.
    private static let longestTrial = 16

    /// The keys that may have signed a token, of one fetch.
    struct Candidates {
        let keys: [ProviderKey]
        fileprivate let fetched: Date?
    }

    /// Returns the key named `keyID` that may have signed a token with `algorithm`; without a name, each
    /// fitting key. Throws `invalidIDToken` with `unknownKey`, and the error of the fetch when no key is known
    /// at all. Throws `cancelled` without waiting for the end of the fetch.
    func keys(
        named keyID: String?, for algorithm: SigningAlgorithm
    ) async throws(OAuthError) -> Candidates {
        if isOld { await renew() }
        if let keys = known(keyID, algorithm) { return Candidates(keys: keys, fetched: fetched) }
        await renew()
        if let keys = known(keyID, algorithm) { return Candidates(keys: keys, fetched: fetched) }
        if Task.isCancelled { throw .cancelled }
        if fetched == nil, let failure { throw failure }
        throw .invalidIDToken(.unknownKey)
    }

    /// Returns the fitting keys of a fetch after that of `known`; none when it is too early for one.
    func keys(newerThan known: Candidates, for algorithm: SigningAlgorithm) async -> [ProviderKey] {
        if fetched == known.fetched { await renew() }
        return fetched == known.fetched ? [] : self.known(nil, algorithm) ?? []
    }

    private func known(_ keyID: String?, _ algorithm: SigningAlgorithm) -> [ProviderKey]? {
        let fitting = keys.filter { $0.fits(algorithm) && (keyID == nil || $0.kid == keyID) }
        // Two keys of one name are a mistake of the provider.
        if keyID != nil, fitting.count > 1 { return nil }
        return fitting.isEmpty ? nil : Array(fitting.prefix(Self.longestTrial))
    }

    private var isOld: Bool {
        guard let fetched else { return true }
        let age = clock().timeIntervalSince(fetched)
        return age < 0 || age >= longestAge
    }

    private func renew() async {
        if isFetching { return await wait() }
        if let tried {
            let passed = clock().timeIntervalSince(tried)
            // A clock that was set back delays no fetch.
            if passed >= 0, passed < coolDown { return }
        }
        tried = clock()
        isFetching = true
        // Not a part of the first caller's task, whose end would end the fetch for all callers.
        Task { [fetch] in take(await fetch()) }
        await wait()
    }

    /// Waits for the end of the fetch, or for the cancellation of the task.
    private func wait() async {
        waitersSoFar += 1
        let number = waitersSoFar
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled || !isFetching {
                    continuation.resume()
                } else {
                    waiting[number] = continuation
                }
            }
        } onCancel: {
            Task { await self.leave(number) }
        }
    }

    private func leave(_ number: UInt64) { waiting.removeValue(forKey: number)?.resume() }

    private func take(_ result: Result<[ProviderKey], OAuthError>) {
        isFetching = false
        defer {
            for continuation in waiting.values { continuation.resume() }
            waiting = [:]
        }
        switch result {
        case .success(let keys):
            self.keys = keys
            fetched = clock()
            failure = nil
        case .failure(let error): failure = error
        }
    }
}
#endif
