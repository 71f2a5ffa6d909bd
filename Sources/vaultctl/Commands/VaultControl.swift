import ArgumentParser
import TokenVault

/// The root of the commands.
struct VaultControl: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "vaultctl",
        abstract: "Keep tokens and other secrets in an encrypted vault.",
        discussion: """
            A secret has a key, its name, within a service, the program or purpose it belongs to. Secrets \
            and passphrases are never arguments: they are read from standard input or files, or asked for.

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

            Options that are not given are taken from the environment:
              VAULTCTL_PASSPHRASE_FILE  --passphrase-file, whose first line opens the vault
              VAULTCTL_KEY_FILE         --key-file, in place of a passphrase
              VAULTCTL_SERVICE          --service, else "default"
              VAULTCTL_VAULT            --vault, else tokenvault/default.vault in
                                        $XDG_DATA_HOME (~/.local/share)
              VAULTCTL_STATE_DIR        --state-dir, else tokenvault in
                                        $XDG_STATE_HOME (~/.local/state)
              VAULTCTL_BACKEND          --backend, else file
              VAULTCTL_COLLECTION       --collection, else the default keyring

            Exit status: 0 done, 1 other failure, 3 not found, 4 locked, 5 wrong passphrase or not \
            permitted, 6 another device's, 7 damaged, 8 not available, 9 conflict, 10 timed out or outcome \
            unknown, 64 usage.
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
