internal import TokenVaultPlatform

/// Imports, once, the secrets that an SDK kept in a plaintext file before it used a storage. The import reads
/// the file, stores its secrets and reads them back. Only then it removes the file.
///
/// ```swift
/// let adoption = PlaintextTokenImport(of: "/home/me/.config/app/tokens.json") { file in
///     let old = try JSONDecoder().decode(OldTokens.self, from: Data(file.unprotectedBytes()))
///     return ["access_token": Secret(utf8: old.access), "refresh_token": Secret(utf8: old.refresh)]
/// }
/// try await adoption.run(into: storage)
/// ```
///
/// It can be run at every start: without the file it does nothing. It can be run again after any
/// interruption. At every moment the secrets are in the file or in the storage. The file is overwritten with
/// zeros and unlinked. A copy-on-write file system, an SSD, snapshots and backups may still hold its
/// contents. Replace secrets that other users could read (``Summary/wasReadableByOthers``).
///
/// No other program should write the file meanwhile. If the import notices a change, it removes nothing. A
/// write through a descriptor that was opened before is lost with the file.
public struct PlaintextTokenImport: Sendable {
    /// The handling of a key that has a different secret in the storage.
    public enum ConflictRule: String, CaseIterable, Hashable, Sendable {
        /// Store nothing and leave the file.
        case fail
        /// Keep the storage's secret and drop the file's.
        case keepStored
        /// Replace the storage's secret.
        case replace
    }

    /// The result of an import.
    public struct Summary: Equatable, Sendable {
        /// Whether there was a file.
        public var foundFile = false
        /// The keys whose secrets were stored.
        public var stored: Set<TokenKey> = []
        /// The keys that had the same secret already, as after a run that was interrupted.
        public var unchanged: Set<TokenKey> = []
        /// The keys whose secret in the storage was kept though the file had another.
        public var kept: Set<TokenKey> = []
        /// Whether users other than the owner could read the file.
        public var wasReadableByOthers = false

        /// Creates an empty summary.
        public init() {}
    }

    /// A closure that decodes a file's contents into the secrets to store. Its error is not passed on,
    /// because it may reveal the contents.
    public typealias Decoding = @Sendable (Secret) throws -> [TokenKey: Secret]

    private let place: @Sendable () throws(TokenStorageError) -> TokenFile
    private let details: TokenDetails
    private let rule: ConflictRule
    private let decode: Decoding

    /// Creates an import of the file at `path`. New items get `details`.
    public init(
        of path: FilePath, details: TokenDetails = TokenDetails(), onConflict rule: ConflictRule = .fail,
        decode: @escaping Decoding
    ) {
        place = { () throws(TokenStorageError) in try TokenFile.at(path) }
        self.details = details
        self.rule = rule
        self.decode = decode
    }

    init(
        of name: String, in directory: any DiskDirectory, onConflict rule: ConflictRule = .fail,
        decode: @escaping Decoding
    ) {
        place = { TokenFile(directory: directory, name: name) }
        details = TokenDetails()
        self.rule = rule
        self.decode = decode
    }

    /// Imports the file into `storage`. After an error the file is unchanged.
    ///
    /// Throws:
    /// - `insecurePermissions` when another user may have written the file, and for a symbolic link;
    /// - `decodingFailed` when the contents cannot be decoded or have no secrets;
    /// - `conflict` by the rule, and when the file or the storage changed meanwhile;
    /// - `corrupt` when a secret was not read back as it was stored;
    /// - the errors of storing and reading.
    @discardableResult
    public func run(into storage: any TokenStorage) async throws(TokenStorageError) -> Summary {
        let thread = WorkerThread(name: "token-file")
        var plan = try await thread.result { () throws(TokenStorageError) in try begin() }
        guard let contents = plan.contents else { return plan.summary }
        for (key, secret) in plan.secrets {
            try plan.add(key, secret, there: try await storage.item(for: key), rule)
        }
        if !plan.changes.isEmpty { try await storage.commit(plan.changes) }
        for (key, secret) in plan.stored { try Self.check(try await storage.secret(for: key), is: secret) }
        let file = plan.file
        try await thread.result { () throws(TokenStorageError) in
            try Self.during { () throws(TokenStorageError) in try file.remove(contents) }
        }
        return plan.summary
    }

    /// Imports the file into a storage with blocking calls, as the asynchronous call does.
    @discardableResult
    public func run(into storage: any BlockingTokenStorage) throws(TokenStorageError) -> Summary {
        var plan = try begin()
        guard let contents = plan.contents else { return plan.summary }
        for (key, secret) in plan.secrets {
            try plan.add(key, secret, there: try storage.item(for: key), rule)
        }
        if !plan.changes.isEmpty { try storage.commit(plan.changes) }
        for (key, secret) in plan.stored { try Self.check(try storage.secret(for: key), is: secret) }
        let file = plan.file
        try Self.during { () throws(TokenStorageError) in try file.remove(contents) }
        return plan.summary
    }

    /// Completes the steps that an earlier run left undone, and reads the file.
    private func begin() throws(TokenStorageError) -> Plan {
        try Self.during { () throws(TokenStorageError) in
            let file = try place()
            try file.tidy()
            var plan = Plan(file: file, details: details)
            guard let contents = try file.read() else { return plan }
            plan.contents = contents
            plan.summary.foundFile = true
            plan.summary.wasReadableByOthers = contents.isReadableByOthers
            if let secrets = try? decode(contents.secret), !secrets.isEmpty {
                plan.secrets = secrets.sorted { $0.key < $1.key }
                return plan
            }
            throw .file(.decodingFailed, .damaged(.tokenFile))
        }
    }

    private static func check(_ read: Secret?, is secret: Secret) throws(TokenStorageError) {
        guard read == secret else {
            throw .file(.corrupt, .damaged(.secretNotReadBack)).during("adopt")
        }
    }

    private static func during<Value>(
        _ body: () throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        do { return try body() } catch { throw error.during("adopt") }
    }

    /// The secrets to store, and the changes for them.
    private struct Plan: Sendable {
        let file: TokenFile
        let details: TokenDetails
        var contents: TokenFile.Contents?
        var secrets: [(key: TokenKey, value: Secret)] = []
        var changes: [TokenChange] = []
        /// The secrets to read back.
        var stored: [(TokenKey, Secret)] = []
        var summary = Summary()

        mutating func add(
            _ key: TokenKey, _ secret: Secret, there item: TokenItem?, _ rule: ConflictRule
        ) throws(TokenStorageError) {
            var expectation = TokenChange.Expectation.absent
            if let item {
                if item.secret == secret {
                    summary.unchanged.insert(key)
                    return
                }
                switch rule {
                case .fail:
                    throw TokenStorageError.file(.conflict, .changedMeanwhile(.storedSecret)).during("adopt")
                case .keepStored:
                    summary.kept.insert(key)
                    return
                case .replace: expectation = .generation(item.metadata.generation)
                }
            }
            changes.append(.store(secret, for: key, details: details, expecting: expectation))
            stored.append((key, secret))
            summary.stored.insert(key)
        }
    }
}
