internal import SystemPackage
package import TokenVaultCrypto
// Public, because the function around every disk access is inlined into users of that module.
public import TokenVaultPlatform

/// The file backend's errors. The public call fills in the operation.
extension TokenStorageError {
    package static let fileBackend = "file"

    package static func file(
        _ code: Code, _ reason: Reason? = nil, generation: Generation? = nil
    ) -> TokenStorageError {
        TokenStorageError(code, operation: "", backend: fileBackend, reason: reason, generation: generation)
    }

    /// Returns the error for damage of `part` at `offset` in the file, in bytes.
    package static func damage(at offset: Int, _ part: Reason.DamagedPart) -> TokenStorageError {
        .file(.corrupt, .damage(part, offset: offset))
    }

    /// Returns the error for a failed system call.
    @usableFromInline
    package static func system(_ failure: SystemFailure) -> TokenStorageError {
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
    package static func vaultIsGone(at path: FilePath) -> TokenStorageError {
        .file(.unavailable, .vaultMissing(path: path.string))
    }

    package static func crypto(_ error: CryptoError) -> TokenStorageError {
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
    @usableFromInline
    package func during(_ operation: String) -> TokenStorageError {
        var error = self
        if error.operation.isEmpty { error.operation = operation }
        return error
    }
}

extension SystemFailure {
    /// Whether the system lacked the resources to look: that says nothing about what is there.
    package var isExhaustion: Bool {
        switch errno {
        case .tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory: true
        default: false
        }
    }
}

/// Runs `body`, which uses the disk, and turns its failures into ``TokenStorageError``.
@inlinable
package func onDisk<Result: ~Copyable>(
    _ body: () throws(SystemFailure) -> Result
) throws(TokenStorageError) -> Result {
    do { return try body() } catch { throw .system(error) }
}

/// Runs `body`, naming the operation in its errors.
@inlinable
package func during<Value>(
    _ operation: String, _ body: () throws(TokenStorageError) -> Value
) throws(TokenStorageError) -> Value {
    do { return try body() } catch { throw error.during(operation) }
}
