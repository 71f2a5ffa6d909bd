import ArgumentParser
import ProgramSupport
import TokenVault
import TokenVaultPlatform

struct Slot: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show and change what opens the vault.",
        discussion: """
            Each passphrase, key file, recovery key and login keyring that opens the vault has a slot.

            Examples:
              vaultctl slot list
              vaultctl slot add key-file ~/.config/example/vault.key
              vaultctl slot add secret-service
              vaultctl slot add recovery
              vaultctl slot remove 2
            """,
        subcommands: [SlotList.self, SlotAdd.self, SlotRemove.self])
}

struct SlotList: VaultCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Print the slots.",
        discussion: """
            One a line: its number, its kind, when it was made, and what it opens: all, or what may be read \
            after-first-unlock. Behind a passphrase stands what a guess costs: passes over memory (Argon2id). Needs \
            no unlocking.

            Examples:
              vaultctl slot list
              vaultctl slot list --json
            """)

    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments)
        let vault = try session.openVault()
        let slots = try calling { () throws(TokenStorageError) in try vault.slots() }
        if let note = vault.keybagNote { console.note(note) }
        if format.json {
            var json = JSONWriter(console.output)
            json.array { json in
                for slot in slots { json.slot(slot) }
            }
            json.end()
        } else {
            for slot in slots {
                var line =
                    "\(slot.id)\t\(slot.kind.rawValue)\t\(Timestamp.text(slot.created))\t\(slot.scope.rawValue)"
                if let cost = slot.cost {
                    line += "\t\(cost.passes) x \(Self.mebibytes(cost.memory)) MiB"
                }
                console.output.line(line)
            }
        }
        return .done
    }

    /// Returns the size in MiB, with one decimal where the size is not a whole number.
    private static func mebibytes(_ bytes: Int) -> String {
        let tenths = (bytes * 10 + (1 << 19)) >> 20
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }
}

struct SlotAdd: VaultCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Add a passphrase, a key file, a recovery key, the login keyring or a systemd credential.",
        discussion: """
            The vault is unlocked with what opens it now. \(UnlockOptions.opensFile) A new passphrase is asked for twice, or read with \
            --new-passphrase-file; a key file is made (mode 0600) when it is missing. With secret-service a \
            random key is kept in the login keyring, and from then on the vault opens without being asked for \
            anything while that is unlocked. Prints the number of the slot.

            With recovery a key is made and printed once, to be written down; it opens the vault wherever the \
            passphrase is asked for.

            With systemd-credential what systemd gave this program as a credential of that name opens the vault from \
            then on: \"vaultctl agent --credential NAME\" in a unit that has the credential. It is a key file, of 32 to \
            4,096 bytes, and so it is listed.

            In a vault with a passphrase or recovery key, a key file or keyring opens by itself only what may be \
            read after the first unlock (the after-first-unlock policies); --scope all gives it everything.

            Examples:
              vaultctl slot add key-file ~/.config/example/vault.key
              vaultctl slot add secret-service --scope all
              vaultctl slot add recovery >/media/stick/recovery-key
              vaultctl slot add passphrase --key-file ~/.config/example/vault.key
            """)

    @Argument(
        help: "What to add: passphrase, key-file, recovery, secret-service or systemd-credential.",
        completion: .list(["passphrase", "key-file", "recovery", "secret-service", "systemd-credential"]))
    var kind: String
    @Argument(help: "The key file to add, or the credential's name.", completion: .file()) var path: String?
    @Option(
        help: ArgumentHelp(
            "What it opens: all or after-first-unlock.", valueName: "scope"),
        completion: .list(["all", "after-first-unlock"]))
    var scope: String?
    @OptionGroup var new: NewPassphraseOptions
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        var session = try Session(console, location.arguments, unlock.arguments)
        let scope = try wantedScope
        let newFile = try new.path
        let keyFile = try Settings.path(path, named: "the path", environment: nil)
        switch (kind, keyFile, newFile) {
        case ("passphrase", nil, _), ("key-file", .some, nil), ("secret-service", nil, nil),
            ("recovery", nil, nil), ("systemd-credential", .some, nil):
            break
        case ("passphrase", .some, _):
            throw .usage(
                "there is an argument too many; a passphrase is never an argument",
                "leave it out to be prompted, or give --new-passphrase-file")
        case ("key-file", nil, _): throw .usage("an argument is missing", "give the path of the key file")
        case ("systemd-credential", nil, _):
            throw .usage("an argument is missing", "give the name of the credential")
        case ("key-file", .some, .some), ("systemd-credential", .some, .some):
            throw .usage("--new-passphrase-file is for a passphrase", "leave it out")
        case ("secret-service", _, _):
            throw .usage("there is an argument too many", "leave it out: the keyring's key is generated")
        case ("recovery", _, _):
            throw .usage("there is an argument too many", "leave it out: the recovery key is generated")
        default:
            throw .usage(
                "there is no such kind of slot",
                "use passphrase, key-file, recovery, secret-service or systemd-credential")
        }
        // The credential is read before anything is unlocked, so that a missing credential shows first.
        let credential = kind == "systemd-credential" ? try Self.credential(path ?? "", console) : nil
        if kind == "passphrase" { try session.calibrate() }
        let vault = try session.openUnlockedVault()
        let before = try calling { () throws(TokenStorageError) in try vault.slots() }
        let slot: VaultSlot
        switch kind {
        case "secret-service": slot = try Self.addKeyring(to: vault, scope: scope, console)
        case "recovery":
            slot = try RecoveryKeys.add(to: vault) { (slot, key) throws(CommandFailure) in
                if format.json {
                    try print(slot, key, console)
                } else {
                    try RecoveryKeys.print(key, console)
                }
            }
        default:
            if let credential {
                slot = try Self.adding { () throws(TokenStorageError) in
                    try vault.addSlot(.keyFile(credential), scope: scope)
                }
            } else if let keyFile {
                slot = try KeyFile.making(keyFile, console) { (contents) throws(CommandFailure) in
                    try Self.adding { () throws(TokenStorageError) in
                        try vault.addSlot(.keyFile(contents), scope: scope)
                    }
                }
            } else {
                let passphrase = try NewPassphraseOptions.read(newFile, console)
                console.progress.show("Adding the slot …")
                slot = try Self.adding { () throws(TokenStorageError) in
                    try vault.addSlot(.passphrase(passphrase), scope: scope)
                }
            }
            console.progress.clear()
        }
        Self.tell(slot, beside: before, wanted: scope, console)
        if kind == "recovery" { return .done }
        if format.json {
            try print(slot, nil, console)
        } else {
            console.output.line(String(slot.id))
        }
        return .done
    }

    private func print(_ slot: VaultSlot, _ key: RecoveryKey?, _ console: Console) throws(CommandFailure) {
        var json = JSONWriter(console.output)
        json.slot(slot, recoveryKey: key?.text)
        json.end()
        try console.output.deliver()
    }

    /// Returns the systemd credential with that name.
    private static func credential(_ name: String, _ console: Console) throws(CommandFailure) -> Secret {
        guard ServiceCredentials.isName(name) else {
            throw .usage("no credential can have that name", "give the name from LoadCredential=")
        }
        guard let path = ServiceCredentials.path(of: name) else {
            throw CommandFailure(
                .unavailable, "there are no credentials (CREDENTIALS_DIRECTORY is not set)",
                "run this in a unit that has the credential, or add its file: \"vaultctl slot add key-file PATH\""
            )
        }
        return try KeyFile.read(path, console, named: "the credential")
    }

    private var wantedScope: VaultSlot.Scope? {
        get throws(CommandFailure) {
            guard let scope else { return nil }
            guard let wanted = VaultSlot.Scope(rawValue: scope) else {
                throw .usage("there is no such scope", "use all or after-first-unlock")
            }
            if wanted == .afterFirstUnlock, kind == "passphrase" || kind == "recovery" {
                throw .usage("a passphrase or recovery key opens everything", "leave out --scope")
            }
            return wanted
        }
    }

    /// Adds a slot that the keyring opens.
    static func addKeyring(
        to vault: BlockingFileVault, scope: VaultSlot.Scope? = nil, _ console: Console
    ) throws(CommandFailure) -> VaultSlot {
        let keyring = console.keyring
        return try calling { () throws(TokenStorageError) in try vault.addSlot(in: keyring, scope: scope) }
    }

    /// Runs a library call that adds a slot. The failure for a method that opens a slot already names that slot.
    private static func adding(
        _ body: () throws(TokenStorageError) -> VaultSlot
    ) throws(CommandFailure) -> VaultSlot {
        do throws(TokenStorageError) { return try body() } catch {
            guard case .slotExists(let slot)? = error.reason else { throw CommandFailure(error) }
            throw CommandFailure(
                .conflict, "slot \(slot.id) (\(slot.kind.rawValue)) already has this unlock method",
                "add another one; a duplicate slot would still open the vault after \"vaultctl slot remove "
                    + "\(slot.id)\"")
        }
    }

    /// Prints notes about unexpected effects of the new slot or of the other slots.
    private static func tell(
        _ slot: VaultSlot, beside others: [VaultSlot], wanted: VaultSlot.Scope?, _ console: Console
    ) {
        let hadAttended = others.contains(where: \.kind.isAttended)
        if slot.kind.isAttended {
            guard !hadAttended else { return }
            for other in others where other.scope == .all {
                console.note(
                    "slot \(other.id) (\(other.kind.rawValue)) still opens everything by itself; to narrow it, "
                        + "remove it and add it again")
            }
        } else if slot.scope == .afterFirstUnlock, wanted == nil {
            console.note(
                "the slot opens only items with an after-first-unlock policy (change an item with \"vaultctl set KEY --policy …\"); "
                    + "with --scope all it opens everything")
        } else if slot.scope == .all, hadAttended {
            console.note("every program that can read that key can now open everything without the user")
        }
    }
}

struct SlotRemove: VaultCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove a slot; the last one cannot be removed.",
        discussion: """
            With the last passphrase go the items of the policy when-passcode-set-this-device-only: that is \
            asked about, unless --yes is given. Copies of the vault made before still open with the slot, and with \
            what they hold so do items written later; --revoke gives the vault a new root and seals every item \
            anew, as it does for "vaultctl passphrase". \(UnlockOptions.opensFile)

            Examples:
              vaultctl slot list
              vaultctl slot remove 2
              vaultctl slot remove 2 --revoke --keep-passphrase-file recovery-key
            """)

    @Argument(help: "The slot's number.") var id: String
    @Flag(help: "Do not ask.") var yes = false
    @OptionGroup var revocation: RevocationOptions
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let number: Int = try Settings.number(id, named: "the slot", 0...Int(Int32.max))
        try revocation.check()
        let (vault, method) = try Self.open(session)
        let slots = try calling { () throws(TokenStorageError) in try vault.slots() }
        let passphrases = slots.filter { $0.kind == .passphrase }
        if slots.count > 1, passphrases.count == 1, passphrases[0].id == number, !yes {
            try console.confirm(
                "Remove the last passphrase and the items that need one (when-passcode-set-this-device-only)?"
            )
        }
        if revocation.revoke {
            let others = try revocation.methods(vault, console, removing: number)
            try RevocationOptions.run(session, console) { (progress) throws(TokenStorageError) in
                try vault.rotateKeys(
                    keeping: others + method, removing: [number], droppingOthers: revocation.dropOthers,
                    progress: progress)
            }
        } else {
            try calling { () throws(TokenStorageError) in try vault.removeSlot(number) }
        }
        let isKeyring = slots.contains { $0.id == number && $0.kind == .secretService }
        let isCleared = isKeyring && Self.clearKeyring(of: vault, console)
        if !revocation.revoke, !isCleared {
            console.note("existing copies of the vault still open with that slot")
        }
        let left = try calling { () throws(TokenStorageError) in try vault.slots() }
        if left.allSatisfy({ $0.kind == .secretService }) {
            console.note(
                "only the login keyring opens the vault now, and a keyring can be lost: add a passphrase")
        }
        return .done
    }

    /// Returns the unlocked vault and its unlock method; no method when the keyring unlocked the vault.
    private static func open(
        _ session: Session
    ) throws(CommandFailure) -> (BlockingFileVault, [UnlockMethod]) {
        let vault = try session.openVault()
        if session.unlock.isTerminal, try session.unlockFromKeyring(vault) { return (vault, []) }
        let slots = try session.slots(of: vault)
        let method = try session.unlock.withUnlockMethod(session.console, opening: slots) {
            (method) throws(CommandFailure) in
            try session.unlock(vault, with: method)
            return method
        }
        for note in vault.unlockWarnings { session.console.note(note) }
        return (vault, [method])
    }

    /// Removes the vault's key from the keyring when no slot needs the key. A key that stays opens only old
    /// copies. Returns whether no key is left.
    static func clearKeyring(of vault: BlockingFileVault, _ console: Console) -> Bool {
        do {
            return try vault.deleteUnusedKeys(in: console.keyring)
        } catch {
            console.note(
                "the slot's key is left in the keyring (\(error.code.summary)): remove it with \"secret-tool clear "
                    + "service org.tokenvault.vault-key\" when no other vault has its key there")
            return false
        }
    }
}
