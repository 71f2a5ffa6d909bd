import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent

struct Status: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Print the state of the vault.",
            description: """
                The command never prompts. With an unlock method, the command unlocks the vault and prints more. That includes the number \
                of items, what compaction would free, the slot that opened the vault, and whether an older copy would be noticed.

                With --quiet, the exit status is the answer. A vault that was locked again counts as locked, although its after-first-unlock items are readable. \
                A vault that a slot of limited scope unlocked counts as unlocked. If no agent holds the vault, an unlock method in an option or variable unlocks it first.
                """,
            examples: [
                "vaultctl status",
                "vaultctl status --key-file ~/.config/example/vault.key --json",
                "vaultctl status --quiet || vaultctl unlock",
            ],
            statuses: [
                .done: "Done. With --quiet: the vault is unlocked.",
                .locked: "With --quiet: the vault is locked.",
                .refused: "The given passphrase or key is wrong.",
                .unavailable:
                    "The vault's file is gone or not usable, or the keyring or the agent is not available. With --quiet: there is no vault.",
            ],
            standard: .copy))

    @Flag(help: "Print no report; end with exit status 0 (unlocked), 4 (locked) or 8 (no vault).")
    var quiet = false

    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let report: Report
        switch session.backend {
        case .memory: report = Report(backend: .memory, vault: nil, state: "unlocked", status: nil, items: 0)
        case .secretService: report = try Self.keyringReport(session)
        case .file: report = try Self.report(session, console)
        }
        if quiet { return report.exitStatus }
        if format.json { report.writeJSON(console.output) } else { report.show(console.output) }
        return .done
    }

    private static func keyringReport(_ session: Session) throws(CommandFailure) -> Report {
        let keyring = session.keyring(mayAsk: false)
        return try calling { () throws(TokenStorageError) in
            let state = try keyring.storage(service: "status").blocking.lockState()
            var items: Int?
            if state == .unlocked {
                items = 0
                for service in try keyring.servicesBlocking().services {
                    items? += try keyring.storage(service: service).blocking.list().items.count
                }
            }
            return Report(
                backend: .secretService, vault: nil, state: state.rawValue, status: nil, items: items)
        }
    }

    private static func report(
        _ session: Session, _ console: Console
    ) throws(CommandFailure) -> Report {
        let path = try session.vaultPath
        let exists: Bool
        do { exists = try SmallFile.exists(path) } catch {
            throw .closedDirectory(of: path, error)
        }
        guard exists else {
            // A vault that this device knows is missing rather than absent.
            let configuration = try session.configuration
            try calling { () throws(TokenStorageError) in
                try BlockingFileVault.requireUnknown(at: path, configuration: configuration)
            }
            return Report(backend: .file, vault: path.string, state: "absent", status: nil, items: nil)
        }
        let vault = try session.openVaultOrCopy()
        let held = try heldStatus(session)
        if held != nil {
            // The agent's report counts; this command only reads the vault's status.
        } else if session.unlock.isTerminal {
            try unlockFromOpenKeyring(vault, session)
        } else {
            let slots = try session.slots(of: vault)
            try session.unlock.withUnlockMethod(console, opening: slots) { (method) throws(CommandFailure) in
                try session.unlock(vault, with: method)
            }
        }
        var status = try calling { () throws(TokenStorageError) in try vault.status() }
        if let held { status.take(held) }
        return Report(
            backend: .file, vault: path.string, state: status.state.rawValue, status: status,
            items: status.items, agent: held)
    }

    /// Returns the agent's status of the vault, if the agent holds the vault and may be asked.
    private static func heldStatus(_ session: Session) throws(CommandFailure) -> AgentVaultStatus? {
        guard let agent = try session.agentToAsk() else { return nil }
        return try calling { () throws(TokenStorageError) in try agent.heldStatus() }
    }

    /// Unlocks with the keyring's key when the keyring is open, without a prompt.
    private static func unlockFromOpenKeyring(
        _ vault: BlockingFileVault, _ session: Session
    ) throws(CommandFailure) {
        let slots = try calling { () throws(TokenStorageError) in try vault.slots() }
        guard slots.contains(where: { $0.kind == .secretService }) else { return }
        let keys = SecretServiceVaultKeys(session.keyring(mayAsk: false))
        // On an error, the status stays `locked`.
        _ = try? vault.unlock(from: keys)
    }

    private struct Report {
        let backend: Backend
        let vault: String?
        let state: String
        let status: VaultStatus?
        let items: Int?
        var agent: AgentVaultStatus?

        /// The exit status for `--quiet` in scripts. A vault that was locked again counts as locked. One that a slot of limited
        /// scope unlocked counts as unlocked.
        var exitStatus: ExitStatus {
            switch state {
            case "unlocked": .done
            case "absent": .unavailable
            default: .locked
            }
        }

        func writeJSON(_ output: Output) {
            var json = JSONWriter(output)
            json.object { json in
                json.member("backend", backend.rawValue)
                json.member("vault", vault)
                json.member("state", state)
                json.member("items", items)
                json.member("agent", agent != nil)
                json.member("lockAfter", (agent?.idleTime?.components.seconds).map { Int($0) })
                if let agent { json.member("locksWithSession", agent.sessionObstacle == nil) }
                if let status {
                    json.member("fileSize", status.fileSize)
                    json.member("reclaimable", status.reclaimable)
                    json.member("keptValues", status.keptValues)
                    // Only a process with the keys knows the rollback protection.
                    let isKnown = status.state != .locked
                    json.member("rollbackProtection", isKnown ? status.rollbackProtection.rawValue : nil)
                    json.member("device", status.device?.rawValue)
                    json.member("unlockedBy", status.unlockedBy?.id)
                    json.member("scope", status.unlockedBy?.scope.rawValue)
                    json.array("slots") { json in
                        for slot in status.slots { json.slot(slot) }
                    }
                    json.member("keyMemory", status.keyMemory?.rawValue)
                    json.array("conflictingCopies") { json in
                        for name in status.conflictingCopies { json.element(name) }
                    }
                    json.member("readOnly", status.readOnlyReason?.rawValue)
                    json.array("notes") { json in
                        for note in status.notes { json.element(note) }
                    }
                }
            }
            json.end()
        }

        private static func text(_ memory: KeyMemory.Protection?) -> String {
            switch memory {
            case .secret: "locked, and not readable by the kernel"
            case .locked: "locked: never written to swap"
            case .unlocked: "not locked: raise the limit of locked memory (ulimit -l)"
            case nil: "not available"
            }
        }

        /// Returns a duration in the form that `--for` accepts: 15m, 8h, 90s.
        private static func span(_ duration: Duration) -> String {
            let seconds = duration.components.seconds
            for (unit, length) in [("h", Int64(3_600)), ("m", 60)] where seconds > 0 && seconds % length == 0
            {
                return "\(seconds / length)\(unit)"
            }
            return "\(seconds)s"
        }

        func show(_ output: Output) {
            output.line("backend:     \(backend.rawValue)")
            if let vault { output.line("vault:       \(CommandFailure.printable(vault))") }
            // The text differs from the JSON value, which reads as if the vault were open.
            let isNarrow = status?.unlockedBy?.scope == .afterFirstUnlock
            let isPartly = state == LockState.afterFirstUnlock.rawValue || isNarrow
            let told = isPartly ? "locked, except for after-first-unlock items" : state
            output.line("state:       \(told)")
            if let items { output.line("items:       \(items)") }
            if let agent {
                let idle = agent.idleTime.map { "locks it after \(Self.span($0)) without use" }
                let holding =
                    switch agent.state {
                    case .locked: "keeps it locked"
                    case .afterFirstUnlock: "serves only after-first-unlock items"
                    case .unlocked: "holds it, \(idle ?? "until \"vaultctl lock\"")"
                    }
                output.line("agent:       \(holding)")
                if let obstacle = agent.sessionObstacle {
                    output.line(
                        "session:     does not lock it: \(CommandFailure.printable(obstacle)); use \"vaultctl lock\""
                    )
                } else {
                    output.line("session:     locks it, and so does sleep")
                }
            }
            guard let status else { return }
            output.line("size:        \(status.fileSize) bytes")
            if let reclaimable = status.reclaimable {
                output.line("reclaimable: \(reclaimable) bytes")
            }
            if status.keptValues > 0 {
                output.line("keeps:       \(counted(status.keptValues, "replaced value")) of each item")
            }
            if status.state != .locked {
                let isNoticed = status.rollbackProtection == .anchored
                output.line("old copies:  \(isNoticed ? "noticed" : "not noticed")")
            }
            if let device = status.device {
                output.line("device:      \(device == .enrolled ? "enrolled" : "not enrolled")")
            }
            if let slot = status.unlockedBy {
                let label =
                    isNarrow ? "partly open: by" : isPartly ? "last opened: by" : "unlocked by:"
                output.line("\(label) slot \(slot.id), \(slot.kind.rawValue)")
            }
            output.line("opens with:  \(status.slots.map(\.kind.rawValue).joined(separator: ", "))")
            output.line("key memory:  \(Self.text(status.keyMemory))")
            for name in status.conflictingCopies {
                output.line(
                    "note:        \(CommandFailure.printable(name)) is another file of this vault: "
                        + "take its changes with \"vaultctl merge FILE\", then remove it")
            }
            for note in status.notes { output.line("note:        \(CommandFailure.printable(note))") }
        }
    }
}

extension VaultStatus {
    /// Takes over the values that only a holder of the keys knows.
    fileprivate mutating func take(_ held: AgentVaultStatus) {
        state = held.state
        items = held.items
        reclaimable = held.reclaimable
        rollbackProtection = held.isAnchored ? .anchored : .none
        device = held.isEnrolled.map { $0 ? .enrolled : .notEnrolled }
        unlockedBy = slots.first { $0.id == held.slot }
    }
}
