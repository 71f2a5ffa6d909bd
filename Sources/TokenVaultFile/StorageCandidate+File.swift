public import SystemPackage
public import TokenVaultCore
internal import TokenVaultPlatform

extension StorageCandidate {
    /// Returns the file vault at `path`, opened and unlocked with `method` when it is picked. The name is
    /// `file`.
    ///
    /// A missing vault is `unavailable`, or is made when `createsWhenMissing` is true. If this device
    /// remembers a vault there and its file is missing, perhaps with its disk, the vault is never made. The
    /// reason is then `vaultMissing`, and no other candidate takes its place. A vault that is present and
    /// does not open fails with the error of opening, for example `wrongPassphrase` or `corrupt`.
    public static func file(
        at path: FilePath, configuration: FileVaultConfiguration, createsWhenMissing: Bool = false,
        unlockedWith method: @escaping @autoclosure @Sendable () throws(TokenStorageError) -> UnlockMethod
    ) -> StorageCandidate {
        let place = VaultPlace(path: path, configuration: configuration)
        return StorageCandidate(
            name: "file",
            probe: { () throws(TokenStorageError) in
                if try place.isTaken() { return .present }
                if createsWhenMissing { return .creatable }
                throw TokenStorageError(
                    .unavailable, operation: "open", backend: TokenStorageError.fileBackend,
                    reason: .noVault(path: path.string))
            },
            storage: { (service) async throws(TokenStorageError) in
                let method = try method()
                if createsWhenMissing, try !place.isTaken() {
                    do throws(TokenStorageError) {
                        return try await FileVault.create(
                            at: path, unlockMethod: method, configuration: configuration
                        ).storage(service: service)
                    } catch {
                        // Another process may have created the vault first.
                        if error.code != .alreadyExists { throw error }
                    }
                }
                let vault = try FileVault.open(at: path, configuration: configuration)
                try await vault.unlock(with: method)
                return vault.storage(service: service)
            })
    }

    /// Returns a vault that the program opened, and unlocks and locks itself. It is `locked` until its first
    /// unlock. The name is `file`.
    public static func file(_ vault: FileVault) -> StorageCandidate {
        StorageCandidate(
            name: "file",
            probe: { () throws(TokenStorageError) in
                if try vault.lockState() != .locked { return .present }
                throw TokenStorageError(.locked, operation: "open", backend: TokenStorageError.fileBackend)
            },
            storage: { (service) throws(TokenStorageError) in vault.storage(service: service) })
    }
}

/// The place of a vault, which may be missing.
private struct VaultPlace: Sendable {
    let path: FilePath
    let configuration: FileVaultConfiguration

    /// Returns whether the file exists. Throws `ioFailure` when that cannot be determined. Throws
    /// `unavailable` when this device remembers a vault there and its file is missing.
    func isTaken() throws(TokenStorageError) -> Bool {
        do {
            if try SmallFile.exists(path) { return true }
        } catch {
            if error.errno != .notDirectory { throw failure(.ioFailure, .systemCall(.init(error))) }
        }
        guard !isRemembered else {
            throw TokenStorageError.vaultIsGone(at: path).during("open")
        }
        return false
    }

    /// Whether this device made a vault at this path and did not destroy it.
    private var isRemembered: Bool {
        guard let state = configuration.stateDirectory, let directory = try? PosixDirectory(state) else {
            return false
        }
        let parent = path.parent
        let real = (try? PosixDirectory(parent.isEmpty ? "." : parent))?.absolutePath
        let paths = [path.lexicallyNormalized(), path.lastComponent.flatMap { real?.appending($0) }]
        return StateStore.remembersVault(at: paths.compactMap(\.self), in: directory)
    }

    private func failure(
        _ code: TokenStorageError.Code, _ reason: TokenStorageError.Reason
    ) -> TokenStorageError {
        TokenStorageError(code, operation: "open", backend: TokenStorageError.fileBackend, reason: reason)
    }
}
