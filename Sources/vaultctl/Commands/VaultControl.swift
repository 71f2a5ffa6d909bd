import ArgumentParser
import TokenVault

/// The root of the commands.
struct VaultControl: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "vaultctl",
        abstract: "Keep tokens and other secrets in an encrypted vault.",
        discussion: """
            A secret has a key, its name, within a service, the program or purpose that it belongs to. Secrets \
            and passphrases are never arguments: vaultctl reads them from standard input or files, or prompts for them.

            The first minute:
              vaultctl init
              vaultctl unlock
              vaultctl store access_token
              vaultctl retrieve access_token
              vaultctl lock

            In a script, with a key file in place of a passphrase:
              export VAULTCTL_KEY_FILE=~/.config/example/vault.key
              get-token | vaultctl store access_token --service com.example.app
              token=$(vaultctl retrieve access_token --service com.example.app) || exit

            Environment variables take the place of options that are not given:
              VAULTCTL_PASSPHRASE_FILE  --passphrase-file, whose first line opens the vault
              VAULTCTL_KEY_FILE         --key-file, in place of a passphrase
              VAULTCTL_SERVICE          --service, else "default"
              VAULTCTL_VAULT            --vault, else tokenvault/default.vault in
                                        $XDG_DATA_HOME (~/.local/share)
              VAULTCTL_STATE_DIR        --state-dir, else tokenvault in
                                        $XDG_STATE_HOME (~/.local/state)
              VAULTCTL_BACKEND          --backend, else file
              VAULTCTL_COLLECTION       --collection, else the default keyring

            Exit status:
               0  Done.
               1  Another failure.
               3  Not found.
               4  Locked, or no unlock method was given.
               5  Wrong passphrase or key, or not permitted.
               6  Another device's item.
               7  Damaged, an old copy, or another vault than expected.
               8  The vault, the keyring, the agent or the provider is not available.
               9  Conflict: it exists already, was changed meanwhile, or is at two paths.
              10  Timed out, or the outcome is unknown.
              64  Wrong usage.
            """,
        version: Self.version + " (libsodium \(LinkedLibraries.sodiumVersion))",
        subcommands: [
            Initialize.self, Store.self, Retrieve.self, Info.self, SetDetails.self, Rename.self,
            Delete.self, History.self, Undo.self, List.self, Unlock.self, Lock.self, Agent.self, Status.self,
            Login.self, Token.self, Logout.self, Profiles.self,
            Verify.self, Compact.self, Salvage.self, Restore.self, Merge.self,
            Adopt.self, Migrate.self, Export.self,
            Import.self, Passphrase.self, Slot.self, Device.self, Keyring.self, Destroy.self, Benchmark.self,
        ])

    /// The version of this program.
    static let version = "vaultctl 0.1.0"
}
