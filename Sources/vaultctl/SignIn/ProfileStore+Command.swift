import TokenVault
import TokenVaultAuth
import TokenVaultPlatform
import VaultAgent

#if canImport(FoundationEssentials)
import FoundationEssentials
import ProgramSupport
#endif

extension ProfileStore {
    /// The name of the service of profiles and sessions. It is not for users' own items.
    static let service = "vaultctl.login"

    /// Returns a valid name for a profile. Throws a usage failure otherwise.
    static func name(_ text: String) throws(CommandFailure) -> String {
        guard (1...900).contains(text.utf8.count) else {
            throw .impossibleProfile
        }
        guard text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
            throw .impossibleProfile
        }
        return text
    }

    /// Returns the name of a profile of another provider that has the same redirect address; `nil` for none. Ports do not
    /// count, because providers ignore those of the loopback (RFC 8252 section 7.3).
    func profile(
        sharing redirect: RedirectAddress, ofOtherThan issuer: String
    ) throws(CommandFailure) -> String? {
        let listing = try calling { () throws(TokenStorageError) in
            try blocking.list(TokenQuery(prefix: Self.profiles))
        }
        for item in listing.items {
            let name = Self.name(of: item.key)
            let stored = try reading(name) { () throws(TokenError) in try profile(name) }
            if let other = stored?.content?.settings, other.issuer != issuer, let address = other.redirect,
                address.host == redirect.host, address.path == redirect.path
            {
                return name
            }
        }
        return nil
    }

    /// Returns the failure for a missing session: the profile is signed out or does not exist.
    func absence(of name: String) throws(CommandFailure) -> CommandFailure {
        try reading(name) { () throws(TokenError) in try profile(name) } == nil
            ? .noProfile : .notSignedIn(name)
    }
}

extension StoredProfile {
    /// The decoded profile. Throws `unavailable` when a newer program stored it.
    var profile: Profile {
        get throws(CommandFailure) {
            guard let content else {
                throw CommandFailure(
                    .unavailable, "the stored profile has a format that this program does not know",
                    "use the newer program, or create it again with --issuer and --client-id")
            }
            return content
        }
    }
}

/// Runs a call about the profile `name` and converts its error into a `CommandFailure`.
func reading<Result>(
    _ name: String, _ body: () throws(TokenError) -> Result
) throws(CommandFailure) -> Result {
    do { return try body() } catch { throw CommandFailure(error, nil, name) }
}

extension CommandFailure {
    /// The failure for an invalid profile name.
    static let impossibleProfile = CommandFailure.usage(
        "the profile's name cannot be used", "give a name of 1 to 900 bytes, without control characters")

    /// The failure for a profile that does not exist.
    static let noProfile = CommandFailure(
        .notFound, "there is no such profile",
        "create it with \"vaultctl login PROFILE --issuer URL --client-id ID\", or see \"vaultctl profiles\""
    )

    /// Returns the failure for the existing profile `name` without a session.
    static func notSignedIn(_ name: String) -> CommandFailure {
        CommandFailure(.notFound, "not signed in to \"\(name)\"", "run \(signingIn(name))")
    }

    /// Returns the command that signs in at an existing profile, quoted for a shell.
    static func signingIn(_ name: String) -> String {
        "\"vaultctl login \(name.hasPrefix("-") ? "-- " : "")\(name.shellWord)\""
    }
}

extension Session {
    /// Returns the store of profiles and sessions, unlocked.
    func profileStore() throws(CommandFailure) -> ProfileStore {
        let service = ProfileStore.service
        switch backend {
        case .file:
            if let agent = try agentVault() {
                return ProfileStore(
                    try lastingStorage(agent, service: service), blocking: agent.storage(service: service))
            }
            let storage = FileTokenStorage(try openUnlockedVault(), service: service)
            return ProfileStore(storage, blocking: storage.blocking)
        case .secretService:
            let storage = keyring().storage(service: service)
            return ProfileStore(storage, blocking: storage.blocking, lease: .storedIntent)
        case .memory:
            throw .usage(
                "the memory backend would lose the session at once", "use --backend file or secret-service")
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
