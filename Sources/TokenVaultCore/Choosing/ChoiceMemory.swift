internal import SystemPackage
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The directory of remembered choices. There is one file for each service, named by a digest of the service.
/// Its one line is the candidate's name.
struct ChoiceMemory: Sendable {
    let directory: FilePath

    static let longestName = 200

    enum Outcome: Sendable {
        case kept
        /// A choice is already remembered.
        case taken
        case failed
    }

    /// Returns the remembered name, or `nil` when there is none. Throws `corrupt`, `ioFailure`.
    func recall(service: String) async throws(TokenStorageError) -> String? {
        try await onThread { () throws(TokenStorageError) in
            let bytes: [UInt8]
            do throws(SystemFailure) {
                bytes = try PosixDirectory(directory).open(Self.fileName(service), .read)
                    .read(Self.longestName + 2, at: 0)
            } catch {
                if error.errno == .noSuchFileOrDirectory { return nil }
                throw Self.failure(.ioFailure, error)
            }
            guard bytes.last == UInt8(ascii: "\n"),
                let name = String(validating: bytes.dropLast(), as: UTF8.self), StorageCandidate.isName(name)
            else {
                throw TokenStorageError(
                    .corrupt, operation: "choose", backend: StorageChooser.backend,
                    reason: .damagedChoice(file: Self.fileName(service)))
            }
            return name
        }
    }

    /// Remembers `name`, durably and atomically.
    func keep(_ name: String, service: String, replacing: Bool) async -> Outcome {
        let result: Outcome? = try? await onThread { () throws(TokenStorageError) in
            do throws(SystemFailure) {
                try PosixDirectory.makeAll(directory)
                let place = try PosixDirectory(directory)
                let temporary = ".\(Random.bytes(8).hexadecimal).choice"
                do throws(SystemFailure) {
                    let file = try place.open(temporary, .create)
                    try file.write(Array("\(name)\n".utf8), at: 0)
                    try file.synchronize()
                    try place.rename(temporary, to: Self.fileName(service), replacing: replacing)
                } catch {
                    try? place.remove(temporary)
                    throw error
                }
                try place.synchronize()
                return .kept
            } catch {
                return error.errno == .fileExists ? .taken : .failed
            }
        }
        return result ?? .failed
    }

    /// Forgets the remembered choice. Throws `ioFailure`.
    func forget(service: String) async throws(TokenStorageError) {
        try await onThread { () throws(TokenStorageError) in
            do throws(SystemFailure) {
                let place = try PosixDirectory(directory)
                try place.remove(Self.fileName(service))
                try place.synchronize()
            } catch {
                if error.errno != .noSuchFileOrDirectory { throw Self.failure(.ioFailure, error) }
            }
        }
    }

    private static func fileName(_ service: String) -> String {
        Hash.digest(Array(service.utf8), length: 16).hexadecimal + ".choice"
    }

    private static func failure(
        _ code: TokenStorageError.Code, _ failure: SystemFailure
    ) -> TokenStorageError {
        TokenStorageError(
            code, operation: "choose", backend: StorageChooser.backend,
            reason: .choiceDirectory(.init(failure)))
    }

    private func onThread<Value: Sendable>(
        _ body: @escaping @Sendable () throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value {
        try await WorkerThread(name: "chooser").result(body)
    }
}
