import ArgumentParser
import SystemPackage
import TokenVault
import TokenVaultPlatform

struct Initialize: VaultCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Create a vault.",
        discussion: """
            The vault is opened by a passphrase, asked for twice, or with --key-file by a key file, which \
            is made (mode 0600) when it is missing. A vault that is there is never overwritten. Where there is \
            a login keyring, a person is asked whether that shall open the vault as well.

            Examples:
              vaultctl init
              vaultctl init --key-file ~/.config/example/vault.key
              vaultctl init --vault team.vault --passphrase-file passphrase.txt
            """)

    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        try session.requireFile()
        let path = try session.vaultPath
        let configuration = try session.configuration
        try Self.refuseExisting(path)
        let method = try session.unlock.newUnlockMethod(console)
        console.progress.show("Creating the vault …")
        defer { console.progress.clear() }
        let vault = try calling { () throws(TokenStorageError) in
            try BlockingFileVault.create(at: path, unlockMethod: method, configuration: configuration)
        }
        if session.unlock.isTerminal { try Self.offerKeyring(vault, console) }
        let status = try calling { () throws(TokenStorageError) in try vault.status() }
        console.progress.clear()
        for note in status.notes { console.note(note) }
        if format.json {
            var json = JSONWriter(console.output)
            json.object { json in
                json.member("vault", path.string)
                json.array("slots") { json in
                    for slot in status.slots { json.slot(slot) }
                }
            }
            json.end()
        } else {
            console.remark("Created \(path.string)")
        }
        return .done
    }

    /// Asks whether the keyring shall open the vault too. That it cannot is no reason to have no vault.
    static func offerKeyring(_ vault: BlockingFileVault, _ console: Console) throws(CommandFailure) {
        guard console.canAsk, console.hasKeyring() else { return }
        console.progress.clear()
        guard try console.offer("Shall your login keyring open the vault too, without the passphrase?") else {
            return
        }
        do {
            _ = try vault.addSlot(in: console.keyring)
        } catch {
            console.note(
                "the keyring was not added (\(error.code.summary)): \"vaultctl slot add secret-service\" does it later"
            )
        }
    }

    /// Says so before a passphrase is asked for or a key file is made; the library makes sure.
    private static func refuseExisting(_ path: FilePath) throws(CommandFailure) {
        let exists: Bool
        do { exists = try SmallFile.exists(path) } catch {
            throw CommandFailure(error, "the vault's directory", "check --vault")
        }
        if exists {
            throw CommandFailure(
                .conflict, "there is a file in the vault's place already",
                "choose another --vault, or remove it with \"vaultctl destroy\"")
        }
    }
}
