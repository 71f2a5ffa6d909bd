internal import SystemPackage
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The file backend's errors. The operation is filled in by the call that people see.
extension TokenStorageError {
    static let fileBackend = "file"

    static func file(
        _ code: Code, underlying: String? = nil, advice: String? = nil, generation: Generation? = nil
    ) -> TokenStorageError {
        TokenStorageError(
            code, operation: "", backend: fileBackend, underlying: underlying, advice: advice,
            generation: generation)
    }

    /// Damage at a place in the file.
    static func damage(at offset: Int, _ what: String) -> TokenStorageError {
        .file(.corrupt, underlying: "\(what)\(placeMark)\(offset)")
    }

    private static let placeMark = " at byte "

    /// What ``damage(at:_:)`` was given; `nil` for another error.
    var damage: (offset: Int, what: String)? {
        guard code == .corrupt, let text = underlying,
            let offset = text.split(separator: " ").last.flatMap({ Int($0) }),
            text.hasSuffix("\(Self.placeMark)\(offset)")
        else { return nil }
        return (offset, String(text.dropLast("\(Self.placeMark)\(offset)".count)))
    }

    /// What to do about a place that belongs to another user.
    static var adviceForForeignPlace: String {
        ProcessFacts.user == 0
            ? "run it as that user, without sudo, or name places of root's: HOME, --vault, --state-dir"
            : "run it as that user, or check HOME and the paths that were given"
    }

    /// What a failed system call means.
    static func system(_ failure: SystemFailure) -> TokenStorageError {
        let code: Code =
            switch failure.errno {
            case Errno.noSpace, .diskQuotaExceeded: .noSpace
            case .readOnlyFileSystem: .readOnly
            case .tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory, .noLocks: .resourcesExhausted
            case .noSuchFileOrDirectory, .notDirectory, .permissionDenied, Errno.notPermitted: .unavailable
            case .tooManySymbolicLinkLevels, .isDirectory, .noSuchAddressOrDevice: .notAVault
            case .fileExists: .alreadyExists
            case .fileTooLarge: .noSpace
            default: .ioFailure
            }
        var advice: String?
        if failure.errno == .fileTooLarge {
            advice =
                "raise the limit on the size of files (\"ulimit -f\"), which is less than the vault needs"
        }
        if failure.errno == .resourceBusy {
            // What the name is a mount point of can be neither replaced nor removed.
            advice =
                failure.call.hasPrefix("unlink")
                ? "unmount the file, which is mounted by itself, and remove it then"
                : "mount the directory that the vault is in, not the file alone; or do this where the file is not mounted"
        }
        return .file(code, underlying: "\(failure.call): \(failure.errno.description)", advice: advice)
    }

    /// A vault was at `path` and is not there any more.
    static func vaultIsGone(at path: FilePath) -> TokenStorageError {
        .file(
            .unavailable, underlying: "the vault file is gone: \(path)",
            advice:
                "mount its disk, put it back, or unlock it once where it is now; \"vaultctl restore\" puts a backup in "
                + "its place, \"vaultctl destroy --forget\" forgets it")
    }

    static func crypto(_ error: CryptoError) -> TokenStorageError {
        switch error {
        case .outOfMemory:
            .file(.resourcesExhausted, advice: "free some memory: the passphrase's cost asks for it")
        case .unavailable:
            .file(.resourcesExhausted, underlying: "no guarded memory")
        case .invalidParameter:
            .file(.internalError)
        }
    }

    /// The same error, told as part of `operation`.
    func during(_ operation: String) -> TokenStorageError {
        var error = self
        if error.operation.isEmpty { error.operation = operation }
        return error
    }
}

extension SystemFailure {
    /// Whether the system had nothing left to look with: that says nothing about what is there.
    var isExhaustion: Bool {
        switch errno {
        case .tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory: true
        default: false
        }
    }
}

/// Runs what talks to the disk, with its failures as ``TokenStorageError``.
func onDisk<Result: ~Copyable>(
    _ body: () throws(SystemFailure) -> Result
) throws(TokenStorageError) -> Result {
    do { return try body() } catch { throw .system(error) }
}
