import ArgumentParser
import ProgramSupport
import TokenVault

/// The options that also rotate keys when a slot changes, and name the slots to keep.
struct RevocationOptions: ParsableArguments {
    @Flag(help: "Rotate the keys, so that old copies of the file open nothing that is written from now on.")
    var revoke = false

    @Option(
        help: ArgumentHelp(
            "With --revoke: the key file of a slot that stays. May be given several times.", valueName: "path"
        ),
        completion: .file())
    var keepKeyFile: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            With --revoke: a file whose first line is the passphrase or recovery key of a slot that stays. \
            May be given several times.
            """, valueName: "path"),
        completion: .file())
    var keepPassphraseFile: [String] = []

    @Flag(help: "With --revoke: remove the slots that are not kept.")
    var dropOthers = false

    /// Rejects options that need `--revoke`, before any prompt.
    func check() throws(CommandFailure) {
        guard revoke || (keepKeyFile.isEmpty && keepPassphraseFile.isEmpty && !dropOthers) else {
            throw .usage(
                "--keep-key-file, --keep-passphrase-file and --drop-others are for --revoke", "add --revoke")
        }
    }

    /// Returns the unlock methods of the slots to keep, except the method that unlocked the vault. The
    /// keyring's key comes from the keyring, when the keyring has a slot.
    func methods(
        _ vault: BlockingFileVault, _ console: Console, removing id: Int? = nil
    ) throws(CommandFailure) -> [UnlockMethod] {
        var methods: [UnlockMethod] = []
        for option in keepKeyFile {
            guard let path = try Settings.path(option, named: "--keep-key-file", environment: nil) else {
                continue
            }
            methods.append(.keyFile(try KeyFile.read(path, console)))
        }
        for option in keepPassphraseFile {
            guard let path = try Settings.path(option, named: "--keep-passphrase-file", environment: nil)
            else {
                continue
            }
            methods.append(.passphrase(try UnlockSource.readPassphraseFile(path, console)))
        }
        let slots = try calling { () throws(TokenStorageError) in try vault.slots() }
        if slots.contains(where: { $0.kind == .secretService && $0.id != id }) {
            // Without an available keyring its slot is lost, which the library allows only with
            // `--drop-others`.
            let keys = (try? vault.openingKeys(in: console.keyring)) ?? []
            methods += keys.map { .secretService($0) }
        }
        if slots.contains(where: { $0.kind == .recovery && $0.id != id }) {
            if let key = try askForRecoveryKey(vault, console) { methods.append(.recoveryKey(key)) }
        }
        return methods
    }

    /// Asks the user for the recovery key, if no other option gave one. Returns `nil` when the user skips it.
    private func askForRecoveryKey(
        _ vault: BlockingFileVault, _ console: Console
    ) throws(CommandFailure) -> RecoveryKey? {
        let opener = try calling { () throws(TokenStorageError) in try vault.status().unlockedBy }
        guard keepPassphraseFile.isEmpty, !dropOthers, opener?.kind != .recovery else { return nil }
        for _ in 1...3 {
            guard
                let typed = try console.askHidden("Recovery key, to keep its slot: ")
            else { return nil }
            if typed.isEmpty { break }
            do throws(TokenStorageError) {
                return try RecoveryKey(typed)
            } catch {
                console.say(error.underlying ?? error.advice ?? error.code.summary)
            }
        }
        throw CommandFailure(
            .refused, "the recovery key's slot would be lost",
            "type the recovery key, or give --drop-others and add another one")
    }

    /// Runs the change, shows its progress and prints its notes. An agent that holds the vault has its old keys, so it
    /// releases the vault.
    static func run(
        _ session: Session, _ console: Console,
        _ change: (@escaping (Int, Int) -> Void) throws(TokenStorageError) -> RevocationReport
    ) throws(CommandFailure) {
        console.progress.show("Deriving new keys …")
        defer { console.progress.clear() }
        let report: RevocationReport
        do throws(TokenStorageError) {
            report = try change { done, total in console.progress.show("Sealing again", done, of: total) }
        } catch {
            guard case .slotWouldBeLost? = error.reason else {
                // The keys may have changed anyway.
                if error.code == .outcomeUnknown { _ = session.releaseFromAgent() }
                throw CommandFailure(error)
            }
            throw CommandFailure(
                .refused, error.underlying ?? "a slot would be lost",
                "keep it with --keep-key-file or --keep-passphrase-file, or give --drop-others and add it again"
            )
        }
        console.progress.clear()
        if session.releaseFromAgent() {
            console.note(
                "the agent had the vault's old keys and released it: run \"vaultctl unlock\" to unlock it again"
            )
        }
        for slot in report.removed { console.note("slot \(slot.id) (\(slot.kind.rawValue)) is removed") }
        console.noteDamagedValues(report.damagedValues)
        if let reason = report.deferredReason {
            console.note(
                "existing items are still under the old keys (\(reason.summary)): run \"vaultctl compact\""
            )
        } else if report.remaining > 0 {
            console.note(
                "\(report.remaining) of the items belong to another device and stay under its keys until it opens the vault"
            )
        }
        console.remark("Sealed \(counted(report.resealed, "item")) again.")
    }
}
