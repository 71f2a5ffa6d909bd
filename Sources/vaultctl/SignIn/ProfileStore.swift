import TokenVault
import TokenVaultAuth
import TokenVaultPlatform
import VaultAgent

#if canImport(FoundationEssentials)
import FoundationEssentials
import ProgramSupport
#endif

/// The store of profiles and their sessions, in a service that is not for users' own items.
struct ProfileStore {
    /// The name of the service.
    static let service = "vaultctl.login"
    /// The prefix of a profile's key. The key of its session is `auth/session/` and the name, as a
    /// `TokenManager` stores it.
    static let profiles = "profile/"

    let storage: any TokenStorage
    let blocking: any BlockingTokenStorage
    let lease: RefreshLease

    // The largest number of attempts when other processes change the profile.
    private static let rounds = 100

    /// Returns a valid name for a profile. Throws a usage failure otherwise.
    static func name(_ text: String) throws(CommandFailure) -> String {
        guard (1...900).contains(text.utf8.count) else {
            throw .impossibleProfile
        }
        guard text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
            throw .impossibleProfile
        }
        do { _ = try Settings.key(profiles + text) } catch { throw .impossibleProfile }
        return text
    }

    /// Returns the name of the profile at `key`. Works by bytes, because the name may begin with a character
    /// that combines with the slash.
    static func name(of key: TokenKey) -> String {
        String(decoding: key.name.utf8.dropFirst(profiles.utf8.count), as: UTF8.self)
    }

    private func key(_ name: String) -> TokenKey { TokenKey(Self.profiles + name) }

    /// Returns the profile with that name; `nil` when there is none.
    func profile(_ name: String) throws(CommandFailure) -> StoredProfile? {
        guard let item = try calling({ () throws(TokenStorageError) in try blocking.item(for: key(name)) })
        else { return nil }
        let profile = try? item.secret.decode(LoginProfile.self)
        return StoredProfile(
            content: profile?.version == LoginProfile.currentVersion ? profile : nil, secret: item.secret,
            policy: item.metadata.isPolicyFromLimitedSession ? nil : item.metadata.policy,
            generation: item.metadata.generation)
    }

    /// Returns the session of the profile with that name; `nil` without a session.
    func session(_ name: String) throws(CommandFailure) -> KeptSession? {
        do throws(TokenError) { return try KeptSession.read(name, in: blocking) } catch {
            throw CommandFailure(error, nil, name)
        }
    }

    /// The fate of tokens that are newer than those of a session.
    enum Newer {
        /// There are no newer tokens.
        case none
        /// The provider may have issued newer tokens that were lost.
        case lost
        /// Another program may be waiting for newer tokens and revokes them on arrival. Whether that program
        /// runs until then is unknown.
        case waitedFor
    }

    /// Returns the fate of tokens that are newer than those of `session`, which was the profile's session.
    func newer(than session: KeptSession, of name: String) -> Newer {
        guard session.mayBeOutdated else { return .none }
        return session.mayBeRenewing && lease.isHeld(for: name, in: storage) ? .waitedFor : .lost
    }

    /// Returns the failure for a missing session: the profile is signed out or does not exist.
    func absence(of name: String) throws(CommandFailure) -> CommandFailure {
        try profile(name) == nil ? .noProfile : .notSignedIn(name)
    }

    /// The contents under a profile's name.
    typealias Contents = (profile: StoredProfile?, session: KeptSession?)

    /// Stores a profile and a session of the matching sign-in in one commit. So one of two concurrent
    /// sign-ins wins with both items. Without `policy`, each item keeps its own. Returns the previous
    /// contents.
    func begin(
        _ tokens: TokenInfo, of user: AuthUser?, with profile: LoginProfile, as name: String,
        policy: AccessPolicy?
    ) throws(CommandFailure) -> Contents {
        try changing(name) { (known) throws(CommandFailure) in
            let session: [TokenChange]
            do throws(TokenError) {
                session = try KeptSession.beginning(
                    with: tokens, user: user, from: profile.source, at: name,
                    policy: policy ?? known.profile?.policy, where: blocking.supportedPolicies,
                    replacing: known.session, now: Date())
            } catch {
                throw CommandFailure(error, nil, name)
            }
            let stored = try calling { () throws(TokenStorageError) in try Secret(encoding: profile) }
            let expected = known.profile.map { TokenChange.Expectation.generation($0.generation) }
            return session + [
                .store(
                    stored, for: key(name), details: TokenDetails(policy: policy),
                    expecting: expected ?? .absent)
            ]
        } isDone: { (now) in
            now.session?.tokens?.accessSecret == tokens.accessSecret
        }
    }

    /// Restores the contents `before`, if the items that ``begin(_:of:with:as:policy:)`` stored with `tokens`
    /// are still there.
    func restore(_ tokens: TokenInfo, to before: Contents, at name: String) throws(CommandFailure) {
        let now: Contents = (try profile(name), try session(name))
        guard let session = now.session, session.tokens?.accessSecret == tokens.accessSecret else { return }
        var changes =
            before.session?.returning(to: name, insteadOf: session.generation) ?? session.ending(at: name)
        if let profile = now.profile {
            let expected = TokenChange.Expectation.generation(profile.generation)
            changes.append(
                before.profile.map {
                    .store(
                        $0.secret, for: key(name), details: TokenDetails(policy: $0.policy),
                        expecting: expected)
                } ?? .delete(key(name), expecting: expected))
        }
        do throws(TokenStorageError) { _ = try blocking.commit(changes) } catch {
            // Another process has changed the items meanwhile.
            if error.code != .conflict, error.code != .notFound { throw CommandFailure(error) }
        }
    }

    /// Ends the session with these `tokens`, if that session exists.
    func endSession(of tokens: TokenInfo, at name: String) throws(CommandFailure) {
        guard let session = try session(name), session.tokens?.accessSecret == tokens.accessSecret else {
            return
        }
        do throws(TokenStorageError) { _ = try blocking.commit(session.ending(at: name)) } catch {
            if error.code != .conflict, error.code != .notFound { throw CommandFailure(error) }
        }
    }

    /// Deletes the session, and with `forgetsProfile` the profile. Returns the deleted contents.
    func end(_ name: String, forgetsProfile: Bool) throws(CommandFailure) -> Contents {
        try changing(name) { (known) in
            var changes = known.session?.ending(at: name) ?? []
            if forgetsProfile, let profile = known.profile {
                changes.append(.delete(key(name), expecting: .generation(profile.generation)))
            }
            return changes
        } isDone: { (now) in
            now.session == nil && !(forgetsProfile && now.profile != nil)
        }
    }

    /// Applies the changes to the contents at `name`, and starts again when another process changes them
    /// meanwhile. Returns the previous contents. If the outcome is unknown, `isDone` decides from the
    /// contents that are there then.
    private func changing(
        _ name: String, _ changesOf: (Contents) throws(CommandFailure) -> [TokenChange],
        isDone: (Contents) -> Bool
    ) throws(CommandFailure) -> Contents {
        for _ in 0..<Self.rounds {
            let known: Contents = (try profile(name), try session(name))
            let changes = try changesOf(known)
            guard !changes.isEmpty else { return known }
            do throws(TokenStorageError) {
                _ = try blocking.commit(changes)
                return known
            } catch {
                switch error.code {
                case .conflict, .notFound: continue
                case .outcomeUnknown:
                    if isDone((try profile(name), try session(name))) { return known }
                    throw CommandFailure(error)
                default: throw CommandFailure(error)
                }
            }
        }
        throw CommandFailure(.conflict, "others change the profile all the time", "try again")
    }
}

extension CommandFailure {
    /// The failure for an invalid profile name.
    static let impossibleProfile = CommandFailure.usage(
        "a profile cannot be called that", "give it a name of 1 to 900 bytes, without control characters")

    /// The failure for a profile that does not exist.
    static let noProfile = CommandFailure(
        .notFound, "there is no such profile",
        "\"vaultctl login PROFILE --issuer URL --client-id ID\" makes one; \"vaultctl profiles\" shows those there are"
    )

    /// Returns the failure for the existing profile `name` without a session.
    static func notSignedIn(_ name: String) -> CommandFailure {
        CommandFailure(.notFound, "nobody is signed in there", "\(signingIn(name)) signs in")
    }

    /// Returns the command that signs in at an existing profile, quoted for a shell.
    static func signingIn(_ name: String) -> String {
        let isPlain = name.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte | 0x20)
                || "._@%+=:,/-".utf8.contains(byte)
        }
        let word =
            isPlain
            ? name
            : "'\(name.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''"))'"
        return "\"vaultctl login \(name.hasPrefix("-") ? "-- " : "")\(word)\""
    }
}

extension Session {
    /// Returns the store of profiles and sessions, unlocked.
    func loginPlace() throws(CommandFailure) -> ProfileStore {
        let service = ProfileStore.service
        switch backend {
        case .file:
            if let agent = try agentVault() {
                return ProfileStore(
                    storage: try lastingStorage(agent, service: service),
                    blocking: agent.storage(service: service), lease: .automatic)
            }
            let storage = FileTokenStorage(try openUnlockedVault(), service: service)
            return ProfileStore(storage: storage, blocking: storage.blocking, lease: .automatic)
        case .secretService:
            let storage = keyring().storage(service: service)
            return ProfileStore(storage: storage, blocking: storage.blocking, lease: .storedIntent)
        case .memory:
            throw .usage(
                "a session that ends with the command is of no use", "use --backend file or secret-service")
        }
    }

    /// Returns the agent's storage. With a key file, the storage opens the vault itself once no agent holds
    /// it. So new tokens are not lost with the agent.
    private func lastingStorage(
        _ agent: BlockingAgentVault, service: String
    ) throws(CommandFailure) -> any TokenStorage {
        guard case .keyFile(let key) = unlock else { return AgentVault(agent).storage(service: service) }
        let (path, configuration) = (try vaultPath, try configuration)
        let left = console.deadline?.remaining ?? timeout ?? .seconds(30)
        let vault = AgentOrFileVault(at: path, agent: AgentEndpoints.own, timeout: left) {
            () throws(TokenStorageError) in
            let vault = try BlockingFileVault.open(at: path, configuration: configuration)
            try vault.unlock(with: .keyFile(at: key))
            return vault
        }
        return vault.storage(service: service)
    }
}
