internal import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgentServer

/// A vault that the agent unlocks at its start, with a credential from systemd.
struct CredentialUnlock {
    private let name: String
    private let vault: FilePath

    /// Parses `NAME:PATH`; `nil` for anything else.
    init?(_ argument: String) {
        guard let colon = argument.firstIndex(of: ":") else { return nil }
        name = String(argument[..<colon])
        vault = FilePath(String(argument[argument.index(after: colon)...]))
        guard ServiceCredentials.isName(name), vault.isAbsolute else { return nil }
    }

    /// Unlocks the vault without a user. The vault does not lock after a time without use.
    ///
    /// Throws `unavailable` without the credential, `wrongPassphrase` when the credential does not open the
    /// vault, and the errors of every unlock.
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
