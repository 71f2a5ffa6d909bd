/// Picks the store for a service's tokens from an ordered list, reports the reasons, and keeps to its choice.
///
/// The first candidate that has items of the service is picked, else the first usable candidate. A candidate
/// that is there and cannot be used (locked, damaged, opened with a wrong passphrase) may hold the items. The
/// choice then fails with that candidate's error, because in the next store the items would be missing:
/// *locked never reads as absent*. Only the given candidates are ever picked.
///
/// A keyring that is there today can be missing tomorrow, for example in an SSH session. So the chooser
/// remembers each choice in a file of the given directory. From then on it picks only that candidate, and
/// fails while the candidate is missing. ``forget(service:)`` and ``remember(_:service:)`` change the
/// remembered choice, for example after a ``TokenMigration``.
public struct StorageChooser: Sendable {
    /// The handling of a candidate that is there and cannot be used.
    public enum UnusableRule: Hashable, Sendable {
        /// Throw the candidate's error.
        case stop
        /// Continue with the next candidate. Use this only where signing in again costs nothing. A remembered
        /// candidate is never skipped.
        case skip
    }

    private let candidates: [StorageCandidate]
    private let memory: ChoiceMemory?
    private let unusable: UnusableRule

    /// Creates a chooser among `candidates`, in order of preference. Choices are remembered in `directory`,
    /// usually the vault's state directory. With `nil` they are not remembered, and every choice examines the
    /// candidates again.
    public init(
        _ candidates: [StorageCandidate], rememberingIn directory: FilePath?,
        unusable: UnusableRule = .stop
    ) {
        self.candidates = candidates
        memory = directory.map { ChoiceMemory(directory: $0) }
        self.unusable = unusable
    }

    /// Picks the store of `service`.
    ///
    /// Throws:
    /// - `unavailable` when no candidate is there, or the remembered one is missing;
    /// - `unavailable` with the reason `vaultMissing` when the file of a vault is missing. Its tokens may
    ///   return, so no other store may take its place;
    /// - the error of a candidate that is there and cannot be used, with the candidate's name as the backend;
    /// - `invalidArgument` for an unusable service, and for candidate names that are unusable or not
    ///   distinct;
    /// - `corrupt` and `ioFailure` when the remembered choice cannot be read.
    public func choose(service: String) async throws(TokenStorageError) -> StorageChoice {
        try check(service)
        if let memory, let name = try await memory.recall(service: service) {
            return try await choose(remembered: name, service)
        }
        let choice = try await chooseAnew(service)
        guard let memory else { return choice }
        switch await memory.keep(choice.name, service: service, replacing: false) {
        case .kept: return choice.remembered
        case .failed: return choice
        case .taken:
            // Another process chose first: a service has one store.
            guard let name = try await memory.recall(service: service), name != choice.name else {
                return choice.remembered
            }
            return try await choose(remembered: name, service)
        }
    }

    /// Remembers the candidate `name` for `service`, in place of the previous choice. Throws
    /// `invalidArgument` for a name that is not among the candidates. Throws `ioFailure` when the choice
    /// cannot be written or there is no directory to remember in.
    public func remember(_ name: String, service: String) async throws(TokenStorageError) {
        try check(service)
        guard candidates.contains(where: { $0.name == name }) else {
            throw failure(.invalidArgument, .limit(.candidate))
        }
        guard case .kept? = await memory?.keep(name, service: service, replacing: true) else {
            throw failure(.ioFailure, .choiceDirectory(nil))
        }
    }

    /// Forgets the choice for `service`: the next choice examines all candidates. Deletes nothing from any
    /// store. Throws `ioFailure`.
    public func forget(service: String) async throws(TokenStorageError) {
        try check(service)
        try await memory?.forget(service: service)
    }

    // MARK: - Examining candidates

    private func choose(
        remembered name: String, _ service: String
    ) async throws(TokenStorageError) -> StorageChoice {
        guard let candidate = candidates.first(where: { $0.name == name }) else {
            throw failure(.unavailable, .chosenStorageMissing(nil))
        }
        let look = await look(at: candidate, service)
        switch (look.finding, look.storage) {
        case (_, let storage?):
            return StorageChoice(
                storage: storage, name: name,
                findings: candidates.map { ($0.name, $0.name == name ? look.finding : .notProbed) },
                isRemembered: true)
        case (.isUnavailable(var error), nil):
            error.reason = .chosenStorageMissing(error.reason)
            throw error
        case (.isUnusable(let error), nil): throw error
        // The remembered store is missing, and its tokens are lost. A new store would hide the loss.
        default: throw failure(.unavailable, .chosenStorageMissing(nil))
        }
    }

    private func chooseAnew(_ service: String) async throws(TokenStorageError) -> StorageChoice {
        var findings: [(name: String, finding: StorageChoice.Finding)] = []
        var picked: (candidate: StorageCandidate, storage: (any TokenStorage)?)?
        for candidate in candidates {
            let look = await look(at: candidate, service)
            findings.append((candidate.name, look.finding))
            switch look.finding {
            case .isUnusable(let error): if unusable == .stop { throw error }
            case .isEmpty: if picked == nil { picked = (candidate, look.storage) }
            case .holdsItems: picked = (candidate, look.storage)
            case .isUnavailable, .notProbed: break
            }
            if look.finding == .holdsItems { break }
        }
        guard let picked else {
            throw failure(
                .unavailable, .noCandidate(findings.compactMap { $0.finding.rejection(of: $0.name) }))
        }
        findings += candidates.dropFirst(findings.count).map { ($0.name, .notProbed) }
        var storage = picked.storage
        if storage == nil { storage = try await picked.candidate.open(service) }
        guard let storage else { throw failure(.internalError) }
        return StorageChoice(
            storage: storage, name: picked.candidate.name, findings: findings, isRemembered: false)
    }

    /// Examines a candidate. Returns no storage when the candidate is missing, not made yet or unusable.
    private func look(
        at candidate: StorageCandidate, _ service: String
    ) async -> (finding: StorageChoice.Finding, storage: (any TokenStorage)?) {
        do throws(TokenStorageError) {
            guard try await candidate.presence() == .present else { return (.isEmpty, nil) }
        } catch {
            // A store that may return may hold the tokens.
            let isAbsent = error.code == .unavailable && !error.mayReturn
            return (isAbsent ? .isUnavailable(error) : .isUnusable(error), nil)
        }
        do throws(TokenStorageError) {
            let storage = try await candidate.open(service)
            let listing = try await candidate.naming { () async throws(TokenStorageError) in
                try await storage.list(.all)
            }
            return (listing.items.isEmpty && listing.hidden == 0 ? .isEmpty : .holdsItems, storage)
        } catch {
            return (.isUnusable(error), nil)
        }
    }

    private func check(_ service: String) throws(TokenStorageError) {
        try Validation(operation: "choose", backend: Self.backend).check(service: service)
        let names = candidates.map(\.name)
        guard Set(names.map { TokenKey($0) }).count == names.count,
            names.allSatisfy({ StorageCandidate.isName($0) })
        else { throw failure(.invalidArgument, .limit(.candidateNames)) }
    }

    private func failure(
        _ code: TokenStorageError.Code, _ reason: TokenStorageError.Reason? = nil
    ) -> TokenStorageError {
        TokenStorageError(code, operation: "choose", backend: Self.backend, reason: reason)
    }

    static let backend = "chooser"
}

extension StorageChoice {
    fileprivate var remembered: StorageChoice {
        StorageChoice(storage: storage, name: name, findings: findings, isRemembered: true)
    }
}
