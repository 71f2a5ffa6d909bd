import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

struct Passphrase: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Change the passphrase.",
            description: """
                The command prompts for the old passphrase, or reads it with --passphrase-file. The command prompts for the new \
                one twice, or reads it with --new-passphrase-file. \(UnlockOptions.opensFile)

                Old copies of the file still open with the old passphrase. The keys in such a copy also open what is stored in \
                the vault later.

                With --revoke, the keys are rotated: the vault gets new keys, and every item is sealed again. Then the keys of \
                old copies open nothing that is stored later. To keep another slot, give its passphrase, key file or recovery key: see --keep-key-file and --keep-passphrase-file. The command itself finds the key in the login keyring, and \
                on a terminal prompts for the recovery key. With --drop-others, slots that are not kept are removed. Without --drop-others, nothing is changed if a slot would be lost.
                """,
            examples: [
                "vaultctl passphrase",
                "vaultctl passphrase --revoke --keep-key-file ~/.config/example/vault.key",
                "vaultctl passphrase --passphrase-file old.txt --new-passphrase-file new.txt",
            ],
            statuses: [
                .locked: "The old passphrase was not given, or no passphrase opens the vault.",
                .refused:
                    "The old passphrase is wrong or is a recovery key, the new one was not given, or --revoke would lose a slot.",
                .conflict:
                    "Another program changed the slots meanwhile, the same vault is at two paths, or its file has a second name (--revoke).",
                .usage: "The command line is wrong, or the new passphrase is empty.",
            ],
            standard: .vault))

    @OptionGroup var new: NewPassphraseOptions
    @OptionGroup var revocation: RevocationOptions
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        var session = try Session(console, location.arguments, unlock.arguments)
        try revocation.check()
        if case .keyFile = session.unlock {
            throw .usage(
                "a key file is not a passphrase",
                "give the old passphrase, or use \"vaultctl slot add passphrase\"")
        }
        let newFile = try new.path
        try session.calibrate()
        let vault = try session.openVault()
        let slots = try session.slots(of: vault)
        if session.unlock.isTerminal, UnattendedVault(slots) != nil {
            throw CommandFailure(
                .locked, "no passphrase opens the vault, so there is none to change",
                "add one with \"vaultctl slot add passphrase\" and --key-file or the login keyring")
        }
        try session.unlock.requireSomebody(
            console, opening: slots, "give --passphrase-file or --passphrase-fd 0")
        // The old passphrase comes first, so that a mistake shows before the user thinks of a new one.
        let known = try session.unlock.withUnlockMethod(console, opening: slots) {
            (method) throws(CommandFailure) in
            try session.unlock(vault, with: method)
            return method
        }
        guard case .passphrase(let old) = known else { return .usage }
        let status = try calling { () throws(TokenStorageError) in try vault.status() }
        if status.unlockedBy?.kind == .recovery {
            throw CommandFailure(
                .refused, "a recovery key cannot be changed like a passphrase",
                "remove the lost passphrase with \"vaultctl slot remove\", then run \"vaultctl slot add passphrase\""
            )
        }
        // Missing unlock methods are found before the user thinks of a new passphrase.
        let others = revocation.revoke ? try revocation.methods(vault, console) : []
        let replacement = try NewPassphraseOptions.read(newFile, console)
        if revocation.revoke {
            try RevocationOptions.run(session, console) { (progress) throws(TokenStorageError) in
                try vault.rotatePassphrase(
                    old, replacedBy: replacement, keeping: others, droppingOthers: revocation.dropOthers,
                    progress: progress)
            }
            return .done
        }
        console.progress.show("Changing the passphrase …")
        try calling { () throws(TokenStorageError) in
            try vault.changePassphrase(from: old, to: replacement)
        }
        console.progress.clear()
        console.note(
            "existing copies of the vault still open with the old passphrase; with --revoke, they do not open what "
                + "is written from now on")
        return .done
    }
}

/// The source of a new passphrase.
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
            .refused, "no terminal to prompt on for the new passphrase", "give --new-passphrase-file")
    }
}
