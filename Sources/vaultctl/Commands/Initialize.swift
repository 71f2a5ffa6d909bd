import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

struct Initialize: VaultCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        page: CommandPage(
            abstract: "Create a vault.",
            description: """
                A passphrase opens the new vault. The command prompts for the passphrase twice, or reads it with \
                --passphrase-file or --passphrase-fd. With --key-file, a key file opens the vault. A missing key file is created \
                with mode 0600.

                On a terminal, the command offers to make a recovery key. With a login keyring, the command also offers to let \
                the keyring open the vault. Keep a recovery key apart from the vault: it is shown once.

                With --secret-service, the login keyring opens the vault in place of a passphrase. A keyring can get lost, so the command makes a \
                recovery key too. Without a terminal, give --recovery, which prints the recovery key on standard output.

                An existing file is never overwritten. If this device knows a vault at the path and its file is gone, no vault \
                is created. Then "vaultctl restore" puts a copy back, and "vaultctl destroy --forget" forgets the vault.

                The command measures this machine, so that each try of a passphrase takes most of a second. If the default state directory does not \
                outlast a restart and the vault does, items are stored for any device. Give --state-dir with a directory that lasts.
                """,
            examples: [
                "vaultctl init",
                "vaultctl init --key-file ~/.config/example/vault.key",
                "vaultctl init --vault team.vault --passphrase-file passphrase.txt",
                "vaultctl init --secret-service --recovery >/media/stick/recovery-key",
            ],
            statuses: [
                .locked: "No unlock method was given, and no prompt is possible; or the keyring is locked.",
                .refused: "--secret-service needs --recovery when there is no terminal.",
                .unavailable:
                    "The directory cannot be used, the keyring is not available, or this device knows a vault whose file is gone.",
                .conflict: "A file is at the vault's path already.",
            ],
            standard: .waiting))

    @Flag(help: "Let the login keyring open the vault, in place of a passphrase.") var secretService = false
    @Flag(help: "Make a recovery key, and print it once on standard output.") var recovery = false

    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        var session = try Session(console, location.arguments, unlock.arguments)
        try session.requireFile()
        let path = try session.vaultPath
        try Self.refuseExisting(path)
        let configuration = try session.configuration
        try calling { () throws(TokenStorageError) in
            try BlockingFileVault.requireUnknown(at: path, configuration: configuration)
        }
        let vault: BlockingFileVault
        do throws(CommandFailure) { vault = try create(&session, at: path) } catch {
            throw Self.placed(error, path, state: try? session.stateDirectory)
        }
        // The agent may still hold the previous vault at this path.
        session.releaseFromAgent()
        defer { console.progress.clear() }
        if !recovery, secretService {
            try RecoveryKeys.add(to: vault) { (_, key) throws(CommandFailure) in
                try RecoveryKeys.showOnTerminal(key, console)
            }
        } else if !recovery, session.unlock.isTerminal {
            try RecoveryKeys.offer(vault, console)
        }
        if session.unlock.isTerminal, !secretService { try Self.offerKeyring(vault, console) }
        let status = try calling { () throws(TokenStorageError) in try vault.status() }
        console.progress.clear()
        for note in status.notes { console.note(note) }
        if recovery {
            // The recovery key comes last, so that the output printed with it is complete.
            try RecoveryKeys.add(to: vault) { (slot, key) throws(CommandFailure) in
                if format.json {
                    try tell(path, slots: status.slots + [slot], key, console)
                } else {
                    try RecoveryKeys.print(key, console)
                }
            }
        } else if format.json {
            try tell(path, slots: status.slots, nil, console)
        }
        console.remark("Created \(path.string)")
        return .done
    }

    private func tell(
        _ path: FilePath, slots: [VaultSlot], _ recoveryKey: RecoveryKey?, _ console: Console
    ) throws(CommandFailure) {
        var json = JSONWriter(console.output)
        json.object { json in
            json.member("vault", path.string)
            json.array("slots") { json in
                for slot in slots { json.slot(slot) }
            }
            if let recoveryKey { json.member("recoveryKey", recoveryKey.text) }
        }
        json.end()
        try console.output.deliver()
    }

    /// Creates the vault with the given unlock method, or asks for a passphrase.
    private func create(
        _ session: inout Session, at path: FilePath
    ) throws(CommandFailure) -> BlockingFileVault {
        let console = session.console
        guard secretService else {
            return try session.unlock.withNewUnlockMethod(console) { (method) throws(CommandFailure) in
                if case .passphrase = method { try session.calibrate() }
                let configuration = try session.configurationForNewVault(at: path)
                return try Self.finishing(at: path, configuration) { () throws(CommandFailure) in
                    console.progress.show("Creating the vault …")
                    return try calling { () throws(TokenStorageError) in
                        try BlockingFileVault.create(
                            at: path, unlockMethod: method, configuration: configuration)
                    }
                }
            }
        }
        guard session.unlock.isTerminal else {
            throw .usage("--secret-service and another unlock method exclude each other", "give one of them")
        }
        guard recovery || console.canAsk else {
            throw CommandFailure(
                .refused, "a vault that only the login keyring opens needs a recovery key",
                "give --recovery, which prints one")
        }
        let keyring = console.keyring
        let configuration = try session.configurationForNewVault(at: path)
        // Signals keep their effect here, because the keyring may prompt the user.
        return try calling { () throws(TokenStorageError) in
            try BlockingFileVault.create(at: path, keyring: keyring, configuration: configuration)
        }
    }

    /// Creates the vault at `path`. A signal that would end the program waits until the vault is complete and
    /// removed again. Otherwise this device would keep keys for a vault that does not exist.
    private static func finishing(
        at path: FilePath, _ configuration: FileVaultConfiguration,
        _ create: () throws(CommandFailure) -> BlockingFileVault
    ) throws(CommandFailure) -> BlockingFileVault {
        let signals = try? SignalForwarder(SignalForwarder.ending)
        let outcome = Result { () throws(CommandFailure) -> BlockingFileVault in try create() }
        guard let signal = signals?.next() else {
            signals?.stop()
            return try outcome.get()
        }
        if case .success(let vault) = outcome {
            vault.close()
            try? BlockingFileVault.destroy(at: path, configuration: configuration)
        }
        signals?.deliver(signal)
        throw .interrupted
    }

    /// Asks whether the keyring shall also open the vault. A failure to add the keyring does not fail the
    /// command.
    static func offerKeyring(_ vault: BlockingFileVault, _ console: Console) throws(CommandFailure) {
        guard console.canAsk, console.hasKeyring() else { return }
        console.progress.clear()
        let question =
            "Let the login keyring open the whole vault too, without the passphrase, for every program you run?"
        guard try console.offer(question) else { return }
        do {
            _ = try vault.addSlot(in: console.keyring, scope: .all)
        } catch {
            console.note(
                "the keyring was not added (\(error.code.summary)): add it later with \"vaultctl slot add secret-service\""
            )
        }
    }

    /// Returns the failure to create the vault at `path`, with the affected directory if there is one. The
    /// library's advice, to create a vault, would make no sense.
    private static func placed(
        _ failure: CommandFailure, _ path: FilePath, state: FilePath?
    ) -> CommandFailure {
        guard let cause = failure.cause, cause.code == .unavailable else { return failure }
        let reason: String
        switch cause.reason {
        case .noDirectory: reason = ""
        case .noVault: reason = cause.underlying.map { " (\($0))" } ?? ""
        default:
            // A cause with its own advice is not about the directory.
            guard cause.advice == nil else { return failure }
            reason = cause.underlying.map { " (\($0))" } ?? ""
        }
        /// Whether this user can make files in the directory.
        func isUsable(_ path: FilePath) -> Bool {
            let directory = try? PosixDirectory(path.isEmpty ? "." : path)
            guard let attributes = try? directory?.attributes(of: ".") else { return false }
            return attributes.owner != ProcessFacts.user || attributes.mode & 0o300 == 0o300
        }
        var placed = failure
        if let state, isUsable(path.parent), !isUsable(state) {
            placed.happened = "the state directory \(state) cannot be made or written to\(reason)"
            placed.advice = "check --state-dir, XDG_STATE_HOME and HOME"
        } else {
            placed.happened =
                "the vault's directory \(ProgramContext.absolute(path).parent) cannot be made or written to\(reason)"
            placed.advice = "check --vault, XDG_DATA_HOME and HOME"
        }
        return placed
    }

    /// Throws when a file exists at `path`, before a passphrase prompt or a new key file. The library checks
    /// again.
    private static func refuseExisting(_ path: FilePath) throws(CommandFailure) {
        let exists: Bool
        do { exists = try SmallFile.exists(path) } catch {
            throw .closedDirectory(of: path, error)
        }
        if exists {
            throw CommandFailure(
                .conflict, "a file is already in the vault's place",
                "choose another --vault, move it away, or remove a vault with \"vaultctl destroy\"")
        }
    }
}
