import SystemPackage
import TokenVault
import TokenVaultPlatform

/// Where the passphrase or key comes from.
enum UnlockSource {
    case keyFile(FilePath)
    case passphraseFile(FilePath)
    case passphraseInput(InputSource)
    /// The terminal, if there is one.
    case terminal

    /// The source that options name or else the environment. A descriptor is secured here, before any
    /// file is opened that could get its number.
    init(_ arguments: UnlockArguments) throws(CommandFailure) {
        let keyFile = try Settings.path(arguments.keyFile, named: "--key-file", environment: nil)
        let file = try Settings.path(
            arguments.passphraseFile, named: "--passphrase-file", environment: nil)
        let given = [arguments.keyFile, arguments.passphraseFile, arguments.passphraseDescriptor]
        guard given.count(where: { $0 != nil }) <= 1 else {
            throw .usage(
                "more than one unlock method was given",
                "give one of --passphrase-file, --passphrase-fd and --key-file")
        }
        if let keyFile {
            self = .keyFile(keyFile)
        } else if let file {
            self = .passphraseFile(file)
        } else if let descriptor = arguments.passphraseDescriptor {
            let number: Int32 = try Settings.number(
                descriptor, named: "--passphrase-fd", 0...1_048_576)
            do throws(SystemFailure) {
                self = .passphraseInput(number == 0 ? .standard : try .inherited(number))
            } catch {
                throw CommandFailure(error, "the passphrase descriptor", "check what the caller passes on")
            }
        } else if let keyFile = try Settings.path(
            nil, named: "--key-file", environment: "VAULTCTL_KEY_FILE")
        {
            self = .keyFile(keyFile)
        } else if let file = try Settings.path(
            nil, named: "--passphrase-file", environment: "VAULTCTL_PASSPHRASE_FILE")
        {
            self = .passphraseFile(file)
        } else {
            self = .terminal
        }
    }

    /// Whether nothing was given and a person would have to be asked.
    var isTerminal: Bool { if case .terminal = self { true } else { false } }

    /// Reads or asks for what opens the vault. Throws `locked` when there is nobody to ask.
    func unlockMethod(_ console: Console) throws(CommandFailure) -> UnlockMethod {
        switch self {
        case .keyFile(let path): return .keyFile(try Self.readKeyFile(path, console))
        case .passphraseFile, .passphraseInput, .terminal:
            return .passphrase(try currentPassphrase(console))
        }
    }

    /// Reads or asks for the passphrase of a vault. Throws `locked` when there is nobody to ask.
    func currentPassphrase(_ console: Console) throws(CommandFailure) -> Secret {
        var given = try readPassphrase(console)
        if given == nil { given = try console.askHidden("Passphrase: ") }
        guard let passphrase = given else {
            throw CommandFailure(TokenStorageError(.locked, operation: "unlock", backend: "vaultctl"))
        }
        guard !passphrase.isEmpty else {
            throw CommandFailure(
                .refused, "the passphrase is empty, which opens no vault", "its first line is what counts")
        }
        return passphrase
    }

    /// Reads or asks for what shall open a new vault; a key file that is missing is made. `nil` when
    /// there is nobody to ask.
    func newUnlockMethod(_ console: Console) throws(CommandFailure) -> UnlockMethod {
        switch self {
        case .keyFile(let path): return .keyFile(try Self.makeKeyFile(path, console))
        case .passphraseFile, .passphraseInput:
            guard let passphrase = try readPassphrase(console) else { break }
            guard !passphrase.isEmpty else { throw .emptyPassphrase }
            return .passphrase(passphrase)
        case .terminal:
            if let passphrase = try console.askNewPassphrase("New passphrase") {
                return .passphrase(passphrase)
            }
        }
        throw CommandFailure(TokenStorageError(.locked, operation: "init", backend: "vaultctl"))
    }

    /// The first line of the passphrase file or descriptor.
    private func readPassphrase(_ console: Console) throws(CommandFailure) -> Secret? {
        switch self {
        case .passphraseFile(let path): try Self.readPassphraseFile(path, console)
        case .passphraseInput(let input): try Self.readLine(input, console)
        case .keyFile, .terminal: nil
        }
    }

    /// The first line of the file or pipe at `path`.
    static func readPassphraseFile(_ path: FilePath, _ console: Console) throws(CommandFailure) -> Secret {
        let input: InputSource
        do { input = try .file(path) } catch {
            throw CommandFailure(error, "the passphrase file", "check its path and mode")
        }
        if input.isReadableByOthers { console.note("others can read the passphrase file: chmod 600 it") }
        return try readLine(input, console)
    }

    private static func readLine(_ input: InputSource, _ console: Console) throws(CommandFailure) -> Secret {
        do {
            var bytes = try input.readLine(limit: Secret.maximumLength, deadline: console.deadline)
            defer { SmallFile.wipe(&bytes) }
            return Secret(bytes)
        } catch {
            throw CommandFailure(error, "the passphrase", "its first line must be the passphrase")
        }
    }

    /// The contents of a key file, but for a newline at the end.
    static func readKeyFile(_ path: FilePath, _ console: Console) throws(CommandFailure) -> Secret {
        do {
            let input = try InputSource.file(path)
            if input.isReadableByOthers { console.note("others can read the key file: chmod 600 it") }
            var bytes = try input.readAll(limit: longestKeyFile + 1, deadline: console.deadline)
            defer { SmallFile.wipe(&bytes) }
            if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
            return Secret(bytes)
        } catch {
            throw CommandFailure(error, "the key file", "check its path, its mode and its size")
        }
    }

    /// The contents of the key file at `path`, which is made of 256 random bits when it is missing.
    static func makeKeyFile(_ path: FilePath, _ console: Console) throws(CommandFailure) -> Secret {
        var generator = SystemRandomNumberGenerator()
        var text: [UInt8] = []
        text.reserveCapacity(65)
        for _ in 0..<32 {
            let byte = UInt8.random(in: 0...255, using: &generator)
            for digit in [byte >> 4, byte & 15] {
                text.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
            }
        }
        defer { SmallFile.wipe(&text) }
        do {
            text.append(UInt8(ascii: "\n"))
            try SmallFile.create(path, text)
        } catch {
            if error.errno == .fileExists { return try readKeyFile(path, console) }
            throw CommandFailure(error, "the key file cannot be made", "check its path")
        }
        text.removeLast()
        console.remark("Made the key file: keep a copy of it in a safe place.")
        return Secret(text)
    }

    private static let longestKeyFile = 4_096
}

extension CommandFailure {
    static let emptyPassphrase = CommandFailure(
        .usage, "the new passphrase is empty", "its first line must be the passphrase")
}
