internal import TokenVaultCore
internal import TokenVaultPlatform

/// What asking the person needs.
protocol KeyringPrompting {
    var service: SecretService { get }
    var link: KeyringLink { get }
    var call: BusCall { get }
}

/// One attempt of one call at the keyring: everything it needs is found.
struct KeyringAccess: KeyringPrompting {
    let service: SecretService
    let link: KeyringLink
    let call: BusCall
    /// The collection that new items go to; `nil` when there is none.
    let collection: String?
    let session: SecretSession

    var memory: KeyringMemory { service.memory }

    /// Sends `methods` at once and waits for the replies.
    func ask(_ methods: [BusMethod]) throws(TokenStorageError) -> [BusReply] {
        try link.connection.ask(methods, for: call)
    }

    /// An item that was found: the one that counts, and others of the same key that some program left.
    struct Found {
        var item: KeyringItem
        var duplicates: [String] = []

        /// Every path, the one that counts last.
        var paths: [String] { duplicates + [item.path] }

        /// The collection of the item that counts.
        var collection: String { KeyringItem.collection(of: item.path) }
    }

    /// Forgets the collection and throws ``collectionIsGone`` when a reply says that the collection is not
    /// there. Such a collection was deleted, or belongs to an earlier service. The next attempt looks for the
    /// collection again.
    func checkCollection(_ replies: [BusReply]) throws(TokenStorageError) {
        for case .error(let name, _) in replies where BusErrorName.isNoObject(name) {
            link.forgetCollection()
            throw KeyringAccess.collectionIsGone
        }
    }

    static let collectionIsGone = TokenStorageError.secretService(
        .unavailable, .changedMeanwhile(.keyringReplaced))

    // The most calls in flight at once: the bus keeps a few hundred for each connection.
    static let mostAtOnce = 100
}

extension SecretService {
    /// Runs `body` with the keyrings at hand. Runs `body` again, once each, when the session or the keyring went away
    /// meanwhile. Also runs `body` again after the user unlocked a locked keyring. `mayAsk` allows the prompt for that.
    /// `body` must not have changed anything when it throws `locked`, ``KeyringAccess/sessionIsGone`` or
    /// ``KeyringAccess/collectionIsGone``.
    func withKeyring<Value>(
        _ call: BusCall, mayAsk: Bool = true,
        _ body: (KeyringAccess) throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        var unlocked: Set<String> = []
        var wasLookedForAnew = false
        var wasReopened = false
        while true {
            try call.check()
            let access = try access(for: call, mayCreate: mayAsk)
            do throws(TokenStorageError) {
                return try body(access)
            } catch {
                // The service refused the request, so no change has begun.
                let isRefused =
                    error == KeyringAccess.sessionIsGone || error == KeyringAccess.collectionIsGone
                    || error == .keyringIsLocked
                var (locked, items) = call.state.withLock { ($0.locked, $0.lockedItems) }
                // A service may lock each item even while its keyring is unlocked.
                if !items.isEmpty, unlocked.isSuperset(of: locked) { swap(&locked, &items) }
                if locked.isEmpty, let collection = access.collection { locked = [collection] }
                if isRefused {
                    call.deliver { state in
                        state.isWriting = false
                        state.locked = []
                        state.lockedItems = []
                    }
                }
                if error == KeyringAccess.sessionIsGone, !wasReopened {
                    access.link.forget(access.session)
                    wasReopened = true
                } else if error == KeyringAccess.collectionIsGone, !wasLookedForAnew {
                    wasLookedForAnew = true
                } else if error == .keyringIsLocked, mayAsk, !unlocked.isSuperset(of: locked) {
                    try access.unlock(locked)
                    unlocked.formUnion(locked)
                } else if error == KeyringAccess.sessionIsGone {
                    throw .secretService(.ioFailure, .keyring(.foreignSession))
                } else {
                    throw error
                }
            }
        }
    }

    private func access(
        for call: BusCall, mayCreate: Bool
    ) throws(TokenStorageError) -> KeyringAccess {
        let link = try link(for: call)
        let session = try link.session(for: call)
        let finder = CollectionFinder(service: self, link: link, call: call, mayCreate: mayCreate)
        let collection = try link.collection { () throws(TokenStorageError) in try finder.find() }
        return KeyringAccess(
            service: self, link: link, call: call, collection: collection, session: session)
    }
}

extension KeyringAccess {
    /// The service does not know the session: it is another process than the one that opened it.
    static let sessionIsGone = TokenStorageError.secretService(
        .unavailable, .changedMeanwhile(.keyringSession))
}
