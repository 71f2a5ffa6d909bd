import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgentServer

/// A vault that is unlocked when the agent starts, with a credential that systemd gave it.
struct CredentialUnlock {
    private let name: String
    private let vault: FilePath

    /// What `NAME:PATH` says; `nil` for anything else.
    init?(_ argument: String) {
        guard let colon = argument.firstIndex(of: ":") else { return nil }
        name = String(argument[..<colon])
        vault = FilePath(String(argument[argument.index(after: colon)...]))
        guard ServiceCredentials.isName(name), vault.isAbsolute else { return nil }
    }

    /// Unlocks it: nobody has to be there, and it does not lock when nobody uses it. Throws `unavailable` without the
    /// credential, `wrongPassphrase` when it does not open the vault, and as every unlock.
    func perform(_ vaults: HeldVaults, stateDirectory: FilePath?) throws(TokenStorageError) {
        guard let path = ServiceCredentials.path(of: name) else {
            throw TokenStorageError(
                .unavailable, operation: "credential", backend: "agent",
                underlying: "CREDENTIALS_DIRECTORY is not set",
                advice: "give the unit the credential: LoadCredential=\(name):PATH")
        }
        guard SmallFile.isRegular(path) || (try? SmallFile.exists(path)) != true else {
            throw TokenStorageError(
                .unavailable, operation: "credential", backend: "agent",
                underlying: "the unit's credential \(name) is no file",
                advice: "give the unit the credential: LoadCredential=\(name):PATH")
        }
        do throws(TokenStorageError) {
            try vaults.unlock(at: vault, with: try .keyFile(at: path), stateDirectory: stateDirectory)
        } catch {
            throw named(error)
        }
    }

    /// The error with the credential in it, where it is about that.
    private func named(_ error: TokenStorageError) -> TokenStorageError {
        var named = error
        switch error.operation {
        case "key file":
            named.operation = "credential"
            named.underlying = "the unit's credential \(name)\(error.underlying.map { ": \($0)" } ?? "")"
            named.advice = "give the unit the credential: LoadCredential=\(name):PATH"
        default:
            guard error.code == .wrongPassphrase else { return error }
            named.underlying = "no slot of the vault has the credential \(name)"
            named.advice = "add it, where it is there: \"vaultctl slot add systemd-credential \(name)\""
        }
        return named
    }
}
