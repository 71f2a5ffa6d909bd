import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent

/// The access of one command to its storage: location, unlock method and calls.
struct Session {
    let console: Console
    let backend: Backend
    let unlock: UnlockSource
    private let vaultOption: FilePath?
    private let stateOption: FilePath?
    let timeout: Duration?
    private let isReadOnly: Bool
    /// Whether the command asks the agent for the vault.
    let asksAgent: Bool
    /// Whether the command may report changes of the vault to the agent.
    let mayTellAgent: Bool
    /// The environment variable that names the unlock method, if no option does.
    let unlockVariable: String?
    /// The derivation cost of a new passphrase's slot.
    private var keyDerivationCost = KeyDerivationCost.moderate

    /// Checks the options, before anything is opened. Sets whether the console may prompt, and its time
    /// limit.
    init(
        _ console: Console, _ location: LocationArguments, _ unlock: UnlockArguments = UnlockArguments()
    ) throws(CommandFailure) {
        self.console = console
        console.mayAsk = !location.noInput
        isReadOnly = location.readOnly
        // An unlock option applies even if the agent reports that the vault is locked.
        asksAgent = !location.noAgent && !location.readOnly && !unlock.areGiven
        mayTellAgent = !location.noAgent
        timeout = try Settings.timeout(location.timeout)
        console.deadline = timeout.map { Deadline(after: $0) }
        StandardStream.deadline = console.deadline
        console.keyringTimeout = timeout
        backend = try Backend(option: location.backend)
        console.collection = try Settings.text(
            location.collection, named: "--collection", environment: "VAULTCTL_COLLECTION")
        vaultOption = try Settings.path(
            location.vault, named: "--vault", environment: "VAULTCTL_VAULT")
        stateOption = try Settings.path(
            location.stateDirectory, named: "--state-dir", environment: "VAULTCTL_STATE_DIR")
        self.unlock = try UnlockSource(unlock)
        unlockVariable = unlock.areGiven ? nil : self.unlock.variable
        if backend == .file { console.vault = (try? vaultPath)?.string }
    }

    /// Throws when the command would write under `--read-only`.
    func requireWriting() throws(CommandFailure) {
        guard !isReadOnly else {
            throw CommandFailure(
                .failure, "the command replaces the vault's file, and --read-only excludes changes",
                "leave --read-only out")
        }
    }

    /// The path of the vault.
    var vaultPath: FilePath {
        get throws(CommandFailure) {
            if let vaultOption { return vaultOption }
            guard let data = UserDirectories.data else { throw Self.noHome("--vault") }
            return data.appending("tokenvault").appending("default.vault")
        }
    }

    var stateDirectory: FilePath {
        get throws(CommandFailure) {
            if let stateOption { return stateOption }
            guard let state = UserDirectories.state else { throw Self.noHome("--state-dir") }
            return state.appending("tokenvault")
        }
    }

    var configuration: FileVaultConfiguration {
        get throws(CommandFailure) {
            var configuration = FileVaultConfiguration(
                stateDirectory: try stateDirectory, keyDerivationCost: keyDerivationCost)
            configuration.isReadOnly = isReadOnly
            // The time for typing and deriving a passphrase counts as well.
            if let timeout { configuration.lockTimeout = timeout }
            configuration.deadline = console.deadline
            return configuration
        }
    }

    /// Returns the configuration for a new vault at `path`. A default state directory that does not outlast a
    /// restart is not used beside a lasting vault. Items that need the state directory would be lost with it.
    func configurationForNewVault(at path: FilePath) throws(CommandFailure) -> FileVaultConfiguration {
        var configuration = try configuration
        if try stateIsPassing(besideVault: path) {
            configuration.stateDirectory = nil
            console.note(
                "the state directory does not outlast a restart, so items are stored for any device; --state-dir "
                    + "names one that lasts")
        }
        return configuration
    }

    /// Whether the default state directory applies and does not outlast a restart, while the vault at `path`
    /// does.
    func stateIsPassing(besideVault path: FilePath) throws(CommandFailure) -> Bool {
        guard stateOption == nil else { return false }
        return !LastingStorage.isLasting(try stateDirectory)
            && LastingStorage.isLasting(path.parent)
    }

    /// Measures the affordable derivation cost of a new passphrase's slot on this machine.
    mutating func calibrate() throws(CommandFailure) {
        console.progress.show("Measuring this machine …")
        defer { console.progress.clear() }
        keyDerivationCost = try calling { () throws(TokenStorageError) in try KeyDerivationCost.calibrated() }
    }

    /// Returns the user's keyrings, with the given time limit. With `orOthers`, also reads items of other
    /// programs.
    func keyring(mayAsk: Bool = true, orOthers: Bool = false) -> SecretService {
        SystemKeyring.service(
            mayAsk: mayAsk && console.mayAsk, timeout: timeout, collection: console.collection,
            orOthers: orOthers)
    }

    /// Throws for a command that needs a vault when the backend is not `file`.
    func requireFile() throws(CommandFailure) {
        guard backend == .file else {
            throw .usage(
                "this command needs a vault file, and the \(backend.rawValue) backend has none",
                "give --backend file; \"vaultctl migrate\" moves items between the two")
        }
    }

    /// Returns the vault, locked.
    func openVault() throws(CommandFailure) -> BlockingFileVault {
        try requireFile()
        return try openVault(at: try vaultPath)
    }

    /// Returns the vault at `path`, locked.
    func openVault(at path: FilePath) throws(CommandFailure) -> BlockingFileVault {
        let configuration = try configuration
        return try calling { () throws(TokenStorageError) in
            try BlockingFileVault.open(at: path, configuration: configuration)
        }
    }

    /// Returns the vault, unlocked with the given method or with a typed passphrase.
    ///
    /// Without `repairing`, the file does not change; a note reports each repair. With `orCopy`, a copy of
    /// the vault is accepted, for commands that only read.
    func openUnlockedVault(
        repairing: Bool = true, orCopy: Bool = false
    ) throws(CommandFailure) -> BlockingFileVault {
        let vault = orCopy ? try openVaultOrCopy() : try openVault()
        if unlock.isTerminal, try unlockFromKeyring(vault, repairing: repairing) { return vault }
        try unlock.withUnlockMethod(console, opening: try slots(of: vault)) {
            (method) throws(CommandFailure) in
            try unlock(vault, with: method, repairing: repairing)
        }
        for note in vault.unlockWarnings { console.note(note) }
        return vault
    }

    /// Whether the keyring opened the vault. False without a keyring slot. False also when the keyring fails
    /// or opens only a part, and the user can be asked for a passphrase. Throws the keyring's failure
    /// otherwise.
    func unlockFromKeyring(
        _ vault: BlockingFileVault, repairing: Bool = true
    ) throws(CommandFailure) -> Bool {
        let slots = try calling { () throws(TokenStorageError) in try vault.slots() }
        let keyrings = slots.filter { $0.kind == .secretService }
        guard !keyrings.isEmpty else { return false }
        let isAttended = slots.contains(where: \.kind.isAttended) && console.canAskForSecrets
        // A user at the terminal gets a prompt rather than a part of the vault.
        if isAttended, keyrings.allSatisfy({ $0.scope == .afterFirstUnlock }) { return false }
        do {
            try vault.unlock(from: console.keyring, repairing: repairing)
            return true
        } catch {
            switch error.code {
            case .locked, .unavailable, .timedOut, .wrongPassphrase:
                let failure = Self.keyringFailure(error, others: slots.map(\.kind))
                guard isAttended else { throw failure }
                console.note(failure.happened)
                return false
            default: throw failure(error)
            }
        }
    }

    /// Returns the failure of the keyring, with other unlock methods as advice.
    private static func keyringFailure(_ error: TokenStorageError, others: [VaultSlot.Kind]) -> CommandFailure
    {
        var failure = CommandFailure(error)
        failure.happened = "the login keyring cannot open the vault: \(failure.happened)"
        switch (others.contains { $0 == .passphrase || $0 == .recovery }, others.contains(.keyFile)) {
        case (true, true): failure.advice = "give --passphrase-file or --key-file"
        case (true, false): failure.advice = "give --passphrase-file"
        case (false, true): failure.advice = "give --key-file"
        case (false, false): break
        }
        return failure
    }

    /// Returns the slots of the vault, which need no key to read.
    func slots(of vault: BlockingFileVault) throws(CommandFailure) -> [VaultSlot] {
        try calling { () throws(TokenStorageError) in try vault.slots() }
    }

    /// Unlocks the vault, and shows progress during a passphrase derivation.
    func unlock(
        _ vault: BlockingFileVault, with method: UnlockMethod, repairing: Bool = true
    ) throws(CommandFailure) {
        if case .passphrase = method { console.progress.show("Unlocking …") }
        defer { console.progress.clear() }
        do throws(TokenStorageError) {
            try vault.unlock(with: method, repairing: repairing)
        } catch {
            throw failure(error)
        }
    }

    /// Returns the failure for an error of an unlock. Where the file lacks what this device has seen, the advice
    /// begins with a copy beside the vault, which may have it.
    func failure(_ error: TokenStorageError) -> CommandFailure {
        var failure = CommandFailure(error)
        guard error.code == .forked || error.code == .rolledBack, error.reason == nil,
            let path = try? vaultPath, let vault = try? openVault(at: path),
            let name = try? vault.status().conflictingCopies.first
        else { return failure }
        let copy = path.removingLastComponent().appending(name).shellWord
        failure.advice =
            "take the changes of the copy beside it with \"vaultctl merge \(copy)\"; otherwise \(failure.advice)"
        return failure
    }

    /// Returns the storage of `service`, unlocked. With `orOthers`, also reads a keyring's items of other
    /// programs.
    func storage(
        service: String, orOthers: Bool = false
    ) throws(CommandFailure) -> any BlockingTokenStorage {
        if let agent = try agentVault() { return agent.storage(service: service) }
        return try ownStorage(service: service, orOthers: orOthers)
    }

    /// Returns the storage of `service`, unlocked, with its history. Only the file backend has a history.
    func history(service: String) throws(CommandFailure) -> any BlockingItemHistory {
        try requireFile()
        if let agent = try agentVault() { return agent.storage(service: service) }
        return try openUnlockedVault().storage(service: service)
    }

    /// Returns the storage of `service`, unlocked in this process, even if an agent holds the vault.
    func ownStorage(
        service: String, orOthers: Bool = false
    ) throws(CommandFailure) -> any BlockingTokenStorage {
        switch backend {
        case .file: try openUnlockedVault().storage(service: service)
        case .secretService: keyring(orOthers: orOthers).storage(service: service).blocking
        case .memory: InMemoryTokenStorage(service: service).blocking
        }
    }

    private static func noHome(_ option: String) -> CommandFailure {
        CommandFailure(.unavailable, "there is no home directory", "set HOME, or give \(option)")
    }
}
