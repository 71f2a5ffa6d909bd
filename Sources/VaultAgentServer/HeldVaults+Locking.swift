internal import Synchronization
internal import SystemPackage
internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

extension HeldVaults {
    /// Locks one vault, at once, also when it is held by another of its names, or by one that it had; false when it is not
    /// held.
    func lock(_ reference: VaultReference) -> Bool {
        noteLock(at: reference.path)
        let vault = state.withLock { $0.vaults[reference.path]?.vault }
        if let vault { lock([vault]) }
        // The same file by another name, be it a link to it; nothing of it is read, which could take long.
        guard let file = SmallFile.identity(of: reference.path) else { return vault != nil }
        noteLock(of: file)
        let others = state.withLock { $0.vaults.values.map(\.vault) }
            .filter { $0 !== vault && $0.fileIdentity == file }
        lock(others)
        return vault != nil || !others.isEmpty
    }

    /// Makes an unlock that is under way end locked.
    private func noteLock(at path: FilePath? = nil, of file: FileIdentity? = nil) {
        state.withLock { state in
            guard state.isUnlocking else { return }
            // However many there are: rather one too many is locked.
            guard state.lockedPaths.count + state.lockedFiles.count < 256 else {
                state.locksOfAll += 1
                return
            }
            if let path { state.lockedPaths.insert(path) }
            if let file { state.lockedFiles.insert(file) }
        }
    }

    private func lock(_ vaults: [BlockingFileVault]) {
        for vault in vaults { vault.lock() }
        tellLocked(vaults)
    }

    private func tellLocked(_ vaults: [BlockingFileVault]) {
        let tell = whenLocked.withLock { $0 }
        tell(vaults)
    }

    /// Locks every vault, at once.
    package func lockAll() {
        let vaults = state.withLock { state in
            state.locksOfAll += 1
            return state.vaults.values.map(\.vault)
        }
        lock(vaults)
    }

    /// Calls `body` with vaults that were locked or let go of just now, from the thread that locked them.
    func tellOfLocks(_ body: @escaping @Sendable ([BlockingFileVault]) -> Void) {
        whenLocked.withLock { $0 = body }
    }

    /// Notes why vaults do not lock with the person's session, for who asks.
    package func note(sessionObstacle: String?) {
        // Each vault's status has it, and those of all vaults go into one frame.
        let text = sessionObstacle.map { String(decoding: $0.utf8.prefix(256), as: UTF8.self) }
        state.withLock { $0.sessionObstacle = text }
    }

    /// Lets go of a vault: wipes all of its keys. False when it is not held.
    func close(_ reference: VaultReference) -> Bool {
        noteLock(at: reference.path)
        guard let held = held(reference) else { return false }
        state.withLock { state in
            if state.vaults[reference.path]?.vault === held.vault { state.vaults[reference.path] = nil }
        }
        held.vault.close()
        tellLocked([held.vault])
        return true
    }

    /// Lets go of a vault that is not the one at its path any more: another one was made there, or its file was removed and
    /// put back elsewhere or anew. Whether it was so.
    func closeIfReplaced(_ reference: VaultReference) -> Bool {
        guard let held = held(reference),
            let now = try? BlockingFileVault.open(
                at: reference.path, configuration: FileVaultConfiguration(stateDirectory: nil)),
            now.identifier != held.vault.identifier || Self.isGone(held.vault)
        else { return false }
        return close(reference)
    }

    /// Whether there is nothing any more where the vault was.
    private static func isGone(_ vault: BlockingFileVault) -> Bool {
        do throws(TokenStorageError) {
            try vault.refresh()
            return false
        } catch {
            return error.code == .unavailable
        }
    }

    /// Lets go of every vault, for good.
    package func closeAll() {
        let vaults = state.withLock { state in
            state.hasEnded = true
            defer { state.vaults = [:] }
            return state.vaults.values.map(\.vault)
        }
        for vault in vaults { vault.close() }
    }
}
