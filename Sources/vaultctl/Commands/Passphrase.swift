import ArgumentParser
import SystemPackage
import TokenVault
import TokenVaultPlatform

struct Passphrase: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Change the passphrase, whatever the size of the vault.",
        discussion: """
            The old one is asked for, or read with --passphrase-file; the new one is asked for twice, or \
            read with --new-passphrase-file. Copies of the vault made before still open with the old one.

            Examples:
              vaultctl passphrase
              vaultctl passphrase --passphrase-file old.txt --new-passphrase-file new.txt
            """)

    @OptionGroup var new: NewPassphraseOptions
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        if case .keyFile = session.unlock {
            throw .usage(
                "a key file is not a passphrase",
                "give the old passphrase, or use \"vaultctl slot add passphrase\"")
        }
        let newFile = try new.path
        let vault = try session.openVault()
        let old = try session.unlock.currentPassphrase(console)
        // The old one first: nobody should think of a new one only to hear that the old one is wrong.
        try session.unlock(vault, with: .passphrase(old))
        let status = try calling { () throws(TokenStorageError) in try vault.status() }
        if status.unlockedBy?.kind == .recovery {
            throw CommandFailure(
                .refused, "a recovery key is not changed like a passphrase",
                "remove the lost passphrase with \"vaultctl slot remove\", then \"vaultctl slot add passphrase\""
            )
        }
        let replacement = try NewPassphraseOptions.read(newFile, console)
        console.progress.show("Changing the passphrase …")
        try calling { () throws(TokenStorageError) in
            try vault.changePassphrase(from: old, to: replacement)
        }
        console.progress.clear()
        console.note("copies of the vault made before still open with the old passphrase")
        return .done
    }
}

/// Where a new passphrase comes from.
struct NewPassphraseOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The file whose first line is the new passphrase.", valueName: "path"),
        completion: .file())
    var newPassphraseFile: String?

    var path: FilePath? {
        get throws(CommandFailure) {
            try Settings.path(newPassphraseFile, named: "--new-passphrase-file", environment: nil)
        }
    }

    /// Reads the new passphrase, or asks for it twice.
    static func read(_ path: FilePath?, _ console: Console) throws(CommandFailure) -> Secret {
        if let path {
            let passphrase = try UnlockSource.readPassphraseFile(path, console)
            guard !passphrase.isEmpty else { throw .emptyPassphrase }
            return passphrase
        }
        if let passphrase = try console.askNewPassphrase("New passphrase") { return passphrase }
        throw CommandFailure(
            .refused, "there is nobody to ask for the new passphrase", "give --new-passphrase-file")
    }
}
