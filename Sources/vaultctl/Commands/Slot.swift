import ArgumentParser
import ProgramSupport
import TokenVault
import TokenVaultPlatform

struct Slot: ParsableCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Show and change what opens the vault.",
            description: """
                Each passphrase, key file, recovery key, login keyring and systemd credential that opens the vault has a slot. One \
                of them is enough to open the vault.
                """,
            examples: [
                "vaultctl slot list",
                "vaultctl slot add key-file ~/.config/example/vault.key",
                "vaultctl slot add secret-service",
                "vaultctl slot add recovery",
                "vaultctl slot remove 2",
            ],
            standard: .group),
        subcommands: [SlotList.self, SlotAdd.self, SlotRemove.self])
}

struct SlotList: VaultCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        page: CommandPage(
            abstract: "Print the slots.",
            description: """
                A line has the number of a slot, its kind, the time when it was made, and its scope. The scope is all, or \
                after-first-unlock for the items of the after-first-unlock policies only. For a passphrase, the line also has the \
                cost of a guess: passes over memory (Argon2id). The command needs no unlock.
                """,
            examples: [
                "vaultctl slot list",
                "vaultctl slot list --json",
            ],
            statuses: [
                .damaged: "The part of the vault with the slots is damaged.",
                .unavailable: "The vault is not available.",
            ],
            standard: .waiting))

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
        page: CommandPage(
            abstract:
                "Add a passphrase, a key file, a recovery key, the login keyring or a systemd credential.",
            description: """
                An existing unlock method unlocks the vault first. \(UnlockOptions.opensFile) The command prints the number of the \
                new slot. The kinds:

                passphrase: the command prompts for the new passphrase twice, or reads it with --new-passphrase-file.

                key-file PATH: a missing key file is created with mode 0600.

                recovery: the command makes a random key and prints it once, to be written down. The key opens the vault wherever a passphrase is accepted, but does not open items of when-passcode-set-this-device-only.

                secret-service: the login keyring keeps a random key. While the keyring is unlocked, the vault opens without a \
                prompt. An unlock option or variable takes precedence over the keyring.

                systemd-credential NAME: the credential that systemd passes to the command opens the vault, as a key file does. The credential has 32 to 4,096 bytes. In a unit with that credential, run "vaultctl agent --credential NAME".

                In a vault with a passphrase or recovery key, a new key file, keyring or credential opens only items of the \
                after-first-unlock policies. With --scope all, the new slot opens everything, without a user, for every program that can read the key. Earlier slots keep their scope.
                """,
            examples: [
                "vaultctl slot add key-file ~/.config/example/vault.key",
                "vaultctl slot add secret-service --scope all",
                "vaultctl slot add recovery >/media/stick/recovery-key",
                "vaultctl slot add passphrase --key-file ~/.config/example/vault.key",
            ],
            statuses: [
                .failure: "The vault has too many slots, the key file cannot be read, or another failure.",
                .locked: "No unlock method was given, or the keyring is locked.",
                .refused:
                    "The passphrase or key is wrong or does not permit this, or the new passphrase was not given.",
                .unavailable: "The vault, the keyring or the directory of credentials is not available.",
                .conflict:
                    "The key opens a slot already, the same vault is at two paths, or another program changed the slots meanwhile.",
                .usage: "The command line is wrong, or the new passphrase is empty.",
            ],
            standard: .vault))

    @Argument(
        help: "The kind: passphrase, key-file, recovery, secret-service or systemd-credential.",
        completion: .list(["passphrase", "key-file", "recovery", "secret-service", "systemd-credential"]))
    var kind: String
    @Argument(help: "The path of the key file, or the name of the credential.", completion: .file()) var path:
        String?
    @Option(
        help: ArgumentHelp(
            "What the slot opens: all or after-first-unlock.", valueName: "scope"),
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
                "there is an unexpected argument; a passphrase is never an argument",
                "leave it out to be prompted, or give --new-passphrase-file")
        case ("key-file", nil, _): throw .usage("an argument is missing", "give the path of the key file")
        case ("systemd-credential", nil, _):
            throw .usage("an argument is missing", "give the name of the credential")
        case ("key-file", .some, .some), ("systemd-credential", .some, .some):
            throw .usage("--new-passphrase-file is for a passphrase", "leave it out")
        case ("secret-service", _, _):
            throw .usage("there is an unexpected argument", "leave it out: the keyring's key is generated")
        case ("recovery", _, _):
            throw .usage("there is an unexpected argument", "leave it out: the recovery key is generated")
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
        page: CommandPage(
            abstract: "Remove a slot, except the last one that opens everything.",
            description: """
                The removal of the last passphrase also destroys the items of the policy when-passcode-set-this-device-only. The command prompts before such a removal, unless --yes is given.

                Old copies of the file still open with the removed slot. The keys in such a copy also open what is stored in the \
                vault later. With --revoke, the keys are rotated, and every item is sealed again, as by "vaultctl passphrase \
                --revoke". A key in the login keyring is deleted when no slot needs it. \(UnlockOptions.opensFile)
                """,
            examples: [
                "vaultctl slot list",
                "vaultctl slot remove 2",
                "vaultctl slot remove 2 --revoke --keep-passphrase-file recovery-key",
            ],
            statuses: [
                .failure: "The slot is the last one that opens everything, or another failure.",
                .notFound: "No slot has this number.",
                .refused:
                    "The passphrase or key is wrong or does not open everything, the removal was not confirmed, or --revoke would lose a slot.",
                .conflict:
                    "Another program changed the slots meanwhile, the same vault is at two paths, or its file has a second name (--revoke).",
            ],
            standard: .vault))

    @Argument(help: "The slot's number.") var id: String
    @Flag(help: "Do not prompt for a confirmation.") var yes = false
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
