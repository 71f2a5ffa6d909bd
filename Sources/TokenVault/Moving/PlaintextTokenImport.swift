internal import TokenVaultPlatform

/// Takes over, once, the secrets that an SDK kept in a plaintext file before it used a storage: reads the file, stores
/// what is in it, reads that back, and only then removes the file.
///
/// ```swift
/// let adoption = PlaintextTokenImport(of: "/home/me/.config/app/tokens.json") { file in
///     let old = try JSONDecoder().decode(OldTokens.self, from: Data(file.unprotectedBytes()))
///     return ["access_token": Secret(utf8: old.access), "refresh_token": Secret(utf8: old.refresh)]
/// }
/// try await adoption.run(into: storage)
/// ```
///
/// It can be run at every start: without the file it does nothing. It can be run again after whatever ended it, and there
/// is no moment at which the secrets are neither in the file nor in the storage. The file is overwritten with zeros and
/// unlinked. A copy-on-write file system, an SSD, snapshots and backups may still have what was in it: secrets that
/// others could read there are best replaced by new ones (``Summary/wasReadableByOthers``).
///
/// No other program should write the file meanwhile. A change before the end is noticed and nothing removed; what is
/// written through a descriptor that was open before is lost with the file.
public struct PlaintextTokenImport: Sendable {
    /// What to do with a key that has another secret in the storage.
    public enum ConflictRule: String, CaseIterable, Hashable, Sendable {
        /// Store nothing and leave the file.
        case fail
        /// Leave the storage's secret, and let the file's go.
        case keepStored
        /// Replace the storage's secret.
        case replace
    }

    /// What was done.
    public struct Summary: Equatable, Sendable {
        /// Whether there was a file.
        public var foundFile = false
        /// The keys whose secrets were stored.
        public var stored: Set<TokenKey> = []
        /// The keys that had the same secret already, as after a run that was interrupted.
        public var unchanged: Set<TokenKey> = []
        /// The keys whose secret in the storage was kept though the file had another.
        public var kept: Set<TokenKey> = []
        /// Whether others than its owner could read the file.
        public var wasReadableByOthers = false

        /// Nothing.
        public init() {}
    }

    /// Makes of a file's contents the secrets to store. What it throws is not passed on: it may tell of the contents.
    public typealias Decoding = @Sendable (Secret) throws -> [TokenKey: Secret]

    private let place: @Sendable () throws(TokenStorageError) -> TokenFile
    private let details: TokenDetails
    private let rule: ConflictRule
    private let decode: Decoding

    /// The adoption of the file at `path`. New items get `details`.
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

    /// Adopts the file into `storage`. Throws `insecurePermissions` when others may have written the file, or for a
    /// link, `decodingFailed` when nothing could be made of it, `conflict` by the rule or when the file or the storage
    /// changed meanwhile, `corrupt` when a secret was not read back as it was stored, and what storing and reading
    /// throw. The file is then as it was.
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

    /// As the call for tasks, for a storage whose calls block.
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

    /// Reads the file, after what a run before this one had left to do.
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

    /// What is to be stored.
    private struct Plan: Sendable {
        let file: TokenFile
        let details: TokenDetails
        var contents: TokenFile.Contents?
        var secrets: [(key: TokenKey, value: Secret)] = []
        var changes: [TokenChange] = []
        /// What has to be read back.
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
