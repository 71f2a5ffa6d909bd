import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault

/// The two ends of a migration, as raw text.
struct MigrationEndOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Where items come from: file, secret-service or memory.", valueName: "backend"),
        completion: .list(["file", "secret-service", "memory"]))
    var from: String?

    @Option(
        help: ArgumentHelp("Where items go to: file, secret-service or memory.", valueName: "backend"),
        completion: .list(["file", "secret-service", "memory"]))
    var to: String?

    @Option(
        help: ArgumentHelp("The vault file that items come from; else that of --vault.", valueName: "path"),
        completion: .file())
    var fromVault: String?

    @Option(
        help: ArgumentHelp("The vault file that items go to; else that of --vault.", valueName: "path"),
        completion: .file())
    var toVault: String?

    @Option(
        help: ArgumentHelp(
            "The key file of the destination, if it differs from that of the source.",
            valueName: "path"),
        completion: .file())
    var toKeyFile: String?

    @Option(
        help: ArgumentHelp(
            "The file whose first line is the destination's passphrase, if it differs from that of the source.",
            valueName: "path"), completion: .file())
    var toPassphraseFile: String?
}

/// The two stores of a migration, determined before anything is unlocked.
struct MigrationStores {
    private enum End {
        case file(FilePath)
        case keyring
        case memory
    }

    private let session: Session
    private let source: End
    private let destination: End
    /// The unlock method of the destination alone.
    private let ownUnlock: UnlockSource?

    init(_ options: MigrationEndOptions, _ session: Session) throws(CommandFailure) {
        self.session = session
        source = try Self.end("from", options.from, options.fromVault, session)
        destination = try Self.end("to", options.to, options.toVault, session)
        if case .file(let old) = source, case .file(let new) = destination,
            old.lexicallyNormalized() == new.lexicallyNormalized()
        {
            throw .usage("source and destination are the same vault", "give --from-vault or --to-vault")
        }
        if case .keyring = source, case .keyring = destination {
            throw .usage("source and destination are the same keyring", "give --from or --to another backend")
        }
        if options.toKeyFile == nil, options.toPassphraseFile == nil {
            ownUnlock = nil
        } else {
            guard case .file = destination else {
                throw .usage("the destination has nothing to unlock", "leave out its unlock method")
            }
            guard options.toKeyFile == nil || options.toPassphraseFile == nil else {
                throw .usage(
                    "more than one unlock method was given",
                    "give one of --to-passphrase-file and --to-key-file")
            }
            _ = try Settings.text(options.toKeyFile, named: "--to-key-file", environment: nil)
            _ = try Settings.text(options.toPassphraseFile, named: "--to-passphrase-file", environment: nil)
            ownUnlock = try UnlockSource(
                UnlockArguments(passphraseFile: options.toPassphraseFile, keyFile: options.toKeyFile))
        }
    }

    /// Whether the destination is memory, which loses every copied item at the end.
    var destinationIsMemory: Bool { if case .memory = destination { true } else { false } }

    /// Opens and unlocks both stores.
    func open() throws(CommandFailure) -> (source: any TokenKeychain, destination: any TokenKeychain) {
        // Both are opened before the first prompt, so that a wrong path is reported at once.
        let (old, new) = (try locked(source), try locked(destination))
        var given: UnlockMethod?
        if let old { given = try unlock(old, with: session.unlock, sharing: nil, "The source:") }
        if let new {
            let unlock = ownUnlock ?? session.unlock
            let shared = ownUnlock == nil ? given : nil
            _ = try self.unlock(new, with: unlock, sharing: shared, "The destination:")
        }
        return (keychain(source, old, orOthers: true), keychain(destination, new, orOthers: false))
    }

    private func keychain(
        _ end: End, _ vault: BlockingFileVault?, orOthers: Bool
    ) -> any TokenKeychain {
        if let vault { return FileVault(vault) }
        if case .keyring = end { return session.keyring(orOthers: orOthers) }
        return InMemoryVault()
    }

    private func locked(_ end: End) throws(CommandFailure) -> BlockingFileVault? {
        guard case .file(let path) = end else { return nil }
        return try session.openVault(at: path)
    }

    /// Unlocks a vault. Returns the unlock method if it may also open the other vault: a given method, but
    /// not a typed one.
    private func unlock(
        _ vault: BlockingFileVault, with source: UnlockSource, sharing shared: UnlockMethod?, _ which: String
    ) throws(CommandFailure) -> UnlockMethod? {
        if source.isTerminal {
            if try session.unlockFromKeyring(vault) { return nil }
            session.console.remark(which)
        }
        // The method is shared, because a descriptor can be read only once.
        if let shared {
            try session.unlock(vault, with: shared)
            return source.isTerminal ? nil : shared
        }
        let slots = try session.slots(of: vault)
        let method = try source.withUnlockMethod(session.console, opening: slots) {
            (method) throws(CommandFailure) in
            try session.unlock(vault, with: method)
            return method
        }
        return source.isTerminal ? nil : method
    }

    private static func end(
        _ name: String, _ backend: String?, _ vault: String?, _ session: Session
    ) throws(CommandFailure) -> End {
        let path = try Settings.path(vault, named: "--\(name)-vault", environment: nil)
        guard backend != nil || path != nil else {
            throw .usage(
                "the \(name == "from" ? "source" : "destination") is missing", "give --\(name)")
        }
        switch try Backend(option: backend ?? Backend.file.rawValue) {
        case .file:
            if let path { return .file(path) }
            return .file(try session.vaultPath)
        case let other:
            guard path == nil else {
                throw .usage("the \(other.rawValue) backend has no file", "leave out --\(name)-vault")
            }
            return other == .memory ? .memory : .keyring
        }
    }
}
