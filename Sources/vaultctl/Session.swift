import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform
import VaultAgent

/// One command's way to its storage: where it is, what opens it, and the calls in between.
struct Session {
    let console: Console
    let backend: Backend
    let unlock: UnlockSource
    private let vaultOption: FilePath?
    private let stateOption: FilePath?
    let timeout: Duration?
    private let isReadOnly: Bool
    /// Whether the agent is asked for the vault.
    let asksAgent: Bool
    /// Whether the agent may be told what became of the vault.
    let mayTellAgent: Bool
    /// The variable of the environment that names what opens the vault, when that does.
    let unlockVariable: String?
    /// What a new passphrase's slot costs.
    private var keyDerivationCost = KeyDerivationCost.moderate

    /// Looks at what was given, before anything is opened. Sets what the console may ask and for how long.
    init(
        _ console: Console, _ location: LocationArguments, _ unlock: UnlockArguments = UnlockArguments()
    ) throws(CommandFailure) {
        self.console = console
        console.mayAsk = !location.noInput
        isReadOnly = location.readOnly
        // What opens the vault is on the line: that is meant, also when the agent says that it is locked.
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

    /// Throws when what is about to be done writes, and nothing is to be written.
    func requireWriting() throws(CommandFailure) {
        guard !isReadOnly else {
            throw CommandFailure(
                .failure, "--read-only, and the vault's file would be replaced", "leave it out")
        }
    }

    /// The vault file.
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
            // What a person takes to type, and a passphrase to derive, counts as well.
            if let timeout { configuration.lockTimeout = timeout }
            configuration.deadline = console.deadline
            return configuration
        }
    }

    /// The configuration for a new vault at `path`. Unless a state directory was given, one that does not last is not
    /// used beside a vault that does: what needs it would be lost with it.
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

    /// Whether nobody named the state directory, and it does not outlast a restart while the vault at `path` does.
    func stateIsPassing(besideVault path: FilePath) throws(CommandFailure) -> Bool {
        guard stateOption == nil else { return false }
        return !LastingStorage.isLasting(try stateDirectory)
            && LastingStorage.isLasting(path.parent)
    }

    /// Measures what a new passphrase's slot may cost on this machine.
    mutating func calibrate() throws(CommandFailure) {
        console.progress.show("Measuring this machine …")
        defer { console.progress.clear() }
        keyDerivationCost = try calling { () throws(TokenStorageError) in try KeyDerivationCost.calibrated() }
    }

    /// The person's keyrings, asked within the time that was given. With `orOthers` items of other programs are
    /// read too.
    func keyring(mayAsk: Bool = true, orOthers: Bool = false) -> SecretService {
        SystemKeyring.service(
            mayAsk: mayAsk && console.mayAsk, timeout: timeout, collection: console.collection,
            orOthers: orOthers)
    }

    /// Refuses a command that makes sense for a vault file alone.
    func requireFile() throws(CommandFailure) {
        guard backend == .file else {
            throw .usage(
                "this is done with a vault file, and the \(backend.rawValue) backend has none",
                "give --backend file; \"vaultctl migrate\" moves items between the two")
        }
    }

    /// The vault, locked.
    func openVault() throws(CommandFailure) -> BlockingFileVault {
        try requireFile()
        return try openVault(at: try vaultPath)
    }

    /// The vault at `path`, locked.
    func openVault(at path: FilePath) throws(CommandFailure) -> BlockingFileVault {
        let configuration = try configuration
        return try calling { () throws(TokenStorageError) in
            try BlockingFileVault.open(at: path, configuration: configuration)
        }
    }

    /// The vault, unlocked with what was given or what the person types.
    /// Without `repairing` nothing in the file changes; each repair is told.
    /// With `orCopy` a copy of the vault will do, for commands that only read.
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

    /// Whether the keyring opened the vault. False when it has no slot for one, or when the keyring cannot, or can
    /// only in part, and a person can be asked for a passphrase instead. Throws why the keyring cannot.
    func unlockFromKeyring(
        _ vault: BlockingFileVault, repairing: Bool = true
    ) throws(CommandFailure) -> Bool {
        let slots = try calling { () throws(TokenStorageError) in try vault.slots() }
        let keyrings = slots.filter { $0.kind == .secretService }
        guard !keyrings.isEmpty else { return false }
        let isAttended = slots.contains(where: \.kind.isAttended) && console.canAskForSecrets
        // A person who is there is asked rather than shown a part.
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
            default: throw CommandFailure(error)
            }
        }
    }

    /// Why the keyring cannot open the vault, and what else would.
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

    /// What opens the vault, which needs no key to be told.
    func slots(of vault: BlockingFileVault) throws(CommandFailure) -> [VaultSlot] {
        try calling { () throws(TokenStorageError) in try vault.slots() }
    }

    /// Unlocks, telling that a passphrase takes a while.
    func unlock(
        _ vault: BlockingFileVault, with method: UnlockMethod, repairing: Bool = true
    ) throws(CommandFailure) {
        if case .passphrase = method { console.progress.show("Unlocking …") }
        defer { console.progress.clear() }
        try calling { () throws(TokenStorageError) in try vault.unlock(with: method, repairing: repairing) }
    }

    /// The storage of `service`, unlocked. With `orOthers` a keyring's items of other programs are read too.
    func storage(
        service: String, orOthers: Bool = false
    ) throws(CommandFailure) -> any BlockingTokenStorage {
        if let agent = try agentVault() { return agent.storage(service: service) }
        return try ownStorage(service: service, orOthers: orOthers)
    }

    /// The storage of `service`, unlocked, with what it had before. The file backend alone has that.
    func history(service: String) throws(CommandFailure) -> any BlockingItemHistory {
        try requireFile()
        if let agent = try agentVault() { return agent.storage(service: service) }
        return try openUnlockedVault().storage(service: service)
    }

    /// The storage of `service`, unlocked here, whatever an agent holds.
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
