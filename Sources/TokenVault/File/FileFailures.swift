internal import SystemPackage
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The file backend's errors. The public call fills in the operation.
extension TokenStorageError {
    static let fileBackend = "file"

    static func file(
        _ code: Code, _ reason: Reason? = nil, generation: Generation? = nil
    ) -> TokenStorageError {
        TokenStorageError(code, operation: "", backend: fileBackend, reason: reason, generation: generation)
    }

    /// Returns the error for damage of `part` at `offset` in the file, in bytes.
    static func damage(at offset: Int, _ part: Reason.DamagedPart) -> TokenStorageError {
        .file(.corrupt, .damage(part, offset: offset))
    }

    /// Returns the error for a failed system call.
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
        return .file(code, .systemCall(.init(failure)))
    }

    /// Returns the error for a vault that was at `path` and is missing.
    static func vaultIsGone(at path: FilePath) -> TokenStorageError {
        .file(.unavailable, .vaultMissing(path: path.string))
    }

    static func crypto(_ error: CryptoError) -> TokenStorageError {
        switch error {
        case .outOfMemory:
            .file(.resourcesExhausted, .shortage(.memoryForPassphrase))
        case .unavailable:
            .file(.resourcesExhausted, .shortage(.guardedMemory))
        case .invalidParameter:
            .file(.internalError)
        }
    }

    /// Returns the same error as part of `operation`.
    func during(_ operation: String) -> TokenStorageError {
        var error = self
        if error.operation.isEmpty { error.operation = operation }
        return error
    }
}

extension SystemFailure {
    /// Whether the system lacked the resources to look: that says nothing about what is there.
    var isExhaustion: Bool {
        switch errno {
        case .tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory: true
        default: false
        }
    }
}

/// Runs `body`, which uses the disk, and turns its failures into ``TokenStorageError``.
func onDisk<Result: ~Copyable>(
    _ body: () throws(SystemFailure) -> Result
) throws(TokenStorageError) -> Result {
    do { return try body() } catch { throw .system(error) }
}
