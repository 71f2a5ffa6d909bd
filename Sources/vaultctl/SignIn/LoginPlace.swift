import TokenVault
import TokenVaultAuth
import VaultAgent

/// Where profiles and their sessions are kept: in a service of their own, which is no user's.
struct LoginPlace {
    /// The service.
    static let service = "vaultctl.login"
    /// What a profile's key begins with. Its session is `auth/session/` and its name, as a `TokenManager` has it.
    static let profiles = "profile/"

    let storage: any TokenStorage
    let blocking: any BlockingTokenStorage
    let lease: RefreshLease

    /// A profile's name that can be one. Throws a usage failure.
    static func name(_ text: String) throws(CommandFailure) -> String {
        guard (1...900).contains(text.utf8.count) else {
            throw .usage("a profile cannot be called that", "give it a name of 1 to 900 bytes")
        }
        _ = try Settings.key(profiles + text)
        return text
    }

    private func key(_ name: String) -> TokenKey { TokenKey(Self.profiles + name) }

    /// The profile of that name; `nil` when there is none.
    func profile(_ name: String) throws(CommandFailure) -> StoredProfile? {
        guard let item = try calling({ () throws(TokenStorageError) in try blocking.item(for: key(name)) })
        else { return nil }
        guard let profile = try? item.secret.decode(LoginProfile.self),
            profile.version == LoginProfile.currentVersion
        else {
            throw CommandFailure(
                .unavailable, "what is stored is no profile that this program knows",
                "use the newer program, or make it anew with --issuer and --client-id")
        }
        return StoredProfile(
            profile: profile, policy: item.metadata.policy, generation: item.metadata.generation)
    }

    /// The profile of that name. Throws `notFound`.
    func existingProfile(_ name: String) throws(CommandFailure) -> StoredProfile {
        guard let stored = try profile(name) else { throw .noProfile }
        return stored
    }

    /// Stores a profile whatever is there; its policy stays unless one is given.
    func store(_ profile: LoginProfile, as name: String, policy: AccessPolicy?) throws(CommandFailure) {
        try calling { () throws(TokenStorageError) in
            let change = TokenChange.store(
                try Secret(encoding: profile), for: key(name), details: TokenDetails(policy: policy))
            _ = try blocking.commit([change])
        }
    }

    /// Deletes a profile. Whether there was one.
    func forget(_ name: String) throws(CommandFailure) -> Bool {
        try calling { () throws(TokenStorageError) in
            try blocking.commit([.delete(key(name))]).existed.first ?? false
        }
    }
}

extension CommandFailure {
    static let noProfile = CommandFailure(
        .notFound, "there is no such profile",
        "\"vaultctl login PROFILE --issuer URL --client-id ID\" makes one; \"vaultctl profiles\" shows those there are"
    )
}

extension Session {
    /// The profiles and sessions, unlocked.
    func loginPlace() throws(CommandFailure) -> LoginPlace {
        let service = LoginPlace.service
        switch backend {
        case .file:
            if let agent = try agentVault() {
                return LoginPlace(
                    storage: AgentVault(agent).storage(service: service),
                    blocking: agent.storage(service: service), lease: .automatic)
            }
            let storage = FileTokenStorage(try openUnlockedVault(), service: service)
            return LoginPlace(storage: storage, blocking: storage.blocking, lease: .automatic)
        case .secretService:
            let storage = keyring().storage(service: service)
            return LoginPlace(storage: storage, blocking: storage.blocking, lease: .storedIntent)
        case .memory:
            throw .usage(
                "a session that ends with the command is of no use", "use --backend file or secret-service")
        }
    }
}
