import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent

struct Unlock: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Unlock the vault in the agent, for every program of yours.",
            description: """
                The command starts the agent if none runs. Until the vault locks, these commands need no passphrase: store, retrieve, \
                info, set, rename, delete, history, undo, list, status, login, token, logout and profiles.

                These commands open the file themselves and need an unlock method: passphrase, verify, compact, salvage, restore, merge, adopt, migrate, export and import. So do slot add, slot remove, device enrol and device remove.

                The agent's answer is final. While the agent holds the vault, VAULTCTL_PASSPHRASE_FILE and VAULTCTL_KEY_FILE are not \
                used. An unlock option or --no-agent makes a command open the file instead.

                The vault locks after the time of --for without use; the time of a suspension counts. The vault also locks with the \
                desktop session, before sleep, and by "vaultctl lock".

                Without options, an unlocked vault does not change, and the command does not prompt. --for changes the time of an unlocked \
                vault. A key that opens less than what is open changes nothing.
                """,
            examples: [
                "vaultctl unlock",
                "vaultctl unlock --for 8h",
                "vaultctl unlock --key-file ~/.config/example/vault.key --for never",
            ],
            statuses: [
                .locked: "No unlock method was given, and no prompt is possible.",
                .refused: "The passphrase or key is wrong.",
                .unavailable: "The vault, the keyring or the agent is not available.",
            ],
            standard: .vault))

    @Option(
        name: .customLong("for"),
        help: ArgumentHelp(
            "Lock after this time without use: 90s, 15m (the default), 8h, or never.", valueName: "time"))
    var idleTime: String?
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        guard !location.noAgent, !location.readOnly else {
            throw .usage(
                "unlock needs the agent, and excludes --no-agent and --read-only",
                "leave them out")
        }
        let locking = try Locking(idleTime)
        // The vault and its slots are checked before the agent starts or a prompt appears.
        let vault = try session.openVault()
        defer { vault.close() }
        // The agent gets the path without links.
        try calling { () throws(TokenStorageError) in try vault.requireExpectedPlace() }
        if idleTime == nil, session.unlock.isTerminal, try isUnlocked(session) { return .done }
        let stateDirectory = try session.stateDirectory
        let slots = try calling { () throws(TokenStorageError) in try vault.slots() }
        if slots.allSatisfy({ $0.kind != .secretService }) {
            try session.unlock.requireSomebody(console, opening: slots)
        }
        try AgentStarter.start(console)
        if session.unlock.isTerminal,
            try unlockFromKeyring(vault, try session.agentClient(), session, stateDirectory, locking)
        {
            try noteScope(of: vault, session)
            return .done
        }
        try session.unlock.requireSomebody(console, opening: slots)
        try session.unlock.withUnlockMethod(console, opening: slots) { (method) throws(CommandFailure) in
            if case .passphrase = method { console.progress.show("Unlocking …") }
            defer { console.progress.clear() }
            try restarting(console) { () throws(CommandFailure) in
                try unlock(session, with: method, stateDirectory, locking)
            }
        }
        try noteScope(of: vault, session)
        return .done
    }

    /// Runs `body` again each time that no agent answers, since an unused agent ends.
    private func restarting(
        _ console: Console, _ body: () throws(CommandFailure) -> Void
    ) throws(CommandFailure) {
        let deadline = Deadline(after: console.deadline?.remaining ?? .seconds(30))
        while true {
            do throws(CommandFailure) {
                return try body()
            } catch {
                guard error.cause?.code == .unavailable, error.cause?.backend == AgentEndpoint.backend,
                    !deadline.hasPassed
                else { throw error }
                try AgentStarter.start(console)
            }
        }
    }

    /// Whether the agent already serves every item of the vault. False when no agent answers.
    private func isUnlocked(_ session: Session) throws(CommandFailure) -> Bool {
        guard let agent = try session.agentToAsk() else { return false }
        return (try? agent.heldStatus())?.state == .unlocked
    }

    private func unlock(
        _ session: Session, with method: UnlockMethod, _ stateDirectory: FilePath, _ locking: Locking
    ) throws(CommandFailure) {
        // The client gets the time that is left now.
        let agent = try session.agentClient()
        do throws(TokenStorageError) {
            try locking.unlock(agent, with: method, stateDirectory)
        } catch {
            throw session.failure(error)
        }
    }

    /// Prints a note when only a part of the vault is open.
    private func noteScope(of vault: BlockingFileVault, _ session: Session) throws(CommandFailure) {
        let agent = try session.agentClient()
        guard let slot = (try? agent.heldStatus())?.slot,
            let opener = try? vault.slots().first(where: { $0.id == slot }), opener.scope == .afterFirstUnlock
        else { return }
        session.console.note(
            "that key opens only the items of the after-first-unlock policies; \"vaultctl unlock --passphrase-file …\" "
                + "opens everything")
    }

    /// Whether a key in the login keyring opened the vault. False when no such key opens it and the
    /// passphrase is needed.
    private func unlockFromKeyring(
        _ vault: BlockingFileVault, _ agent: BlockingAgentVault, _ session: Session,
        _ stateDirectory: FilePath, _ locking: Locking
    ) throws(CommandFailure) -> Bool {
        let slots = try calling { () throws(TokenStorageError) in try vault.slots() }
        let keyrings = slots.filter { $0.kind == .secretService }
        guard !keyrings.isEmpty else { return false }
        let isAttended = slots.contains(where: \.kind.isAttended) && session.console.canAskForSecrets
        // A user at the terminal gets a prompt rather than a part of the vault.
        if isAttended, keyrings.allSatisfy({ $0.scope == .afterFirstUnlock }) { return false }
        do throws(TokenStorageError) {
            for (_, key) in try session.console.keyring.keys(vault: vault.identifier) {
                do throws(TokenStorageError) {
                    try locking.unlock(agent, with: .secretService(key), stateDirectory)
                    return true
                } catch {
                    // The vault has no slot for this key, or the key belongs to another copy.
                    if error.code != .wrongPassphrase, error.code != .invalidArgument { throw error }
                }
            }
        } catch {
            guard isAttended else { throw CommandFailure(error) }
            session.console.note("the login keyring cannot open the vault: \(error.code.summary)")
        }
        return false
    }

    /// The value of `--for`: when the vault locks.
    enum Locking: Equatable {
        /// No value: after 15 minutes, or as set before.
        case usual
        /// After a time without use; `nil` for never.
        case after(Duration?)

        init(_ text: String?) throws(CommandFailure) {
            switch text {
            case nil: self = .usual
            case "never": self = .after(nil)
            case let text?:
                guard let seconds = ItemDetails.seconds(text), seconds > 0, seconds <= 1e9 else {
                    throw .usage("--for is not a duration", "use a span such as 90s, 15m or 8h, or never")
                }
                self = .after(.seconds(Int64(seconds)))
            }
        }

        func unlock(
            _ agent: BlockingAgentVault, with method: UnlockMethod, _ stateDirectory: FilePath
        ) throws(TokenStorageError) {
            switch self {
            case .usual: try agent.unlock(with: method, stateDirectory: stateDirectory)
            case .after(let time):
                try agent.unlock(with: method, stateDirectory: stateDirectory, lockingAfter: time)
            }
        }
    }
}
