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
                reason: .credential(name, .noDirectory))
        }
        guard SmallFile.isRegular(path) || (try? SmallFile.exists(path)) != true else {
            throw TokenStorageError(
                .unavailable, operation: "credential", backend: "agent", reason: .credential(name, .notAFile))
        }
        let method: UnlockMethod
        do throws(TokenStorageError) {
            method = try .keyFile(at: path)
        } catch {
            var error = error
            error.operation = "credential"
            error.reason = .credential(name, .unreadable(error.reason))
            throw error
        }
        do throws(TokenStorageError) {
            try vaults.unlock(at: vault, with: method, stateDirectory: stateDirectory)
        } catch {
            guard error.code == .wrongPassphrase else { throw error }
            var error = error
            error.reason = .credential(name, .noSlot)
            throw error
        }
    }
}
