internal import Synchronization
internal import SystemPackage
internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

extension HeldVaults {
    /// Locks one vault at once: the vault at the path, and the vault with the identifier at any path. Returns
    /// false when neither is held. Does not access the file system, which may hang.
    func lock(_ reference: VaultReference) -> Bool {
        let (vaults, isClosed) = state.withLock { state in
            state.noteLock(of: reference)
            func isMeant(_ path: FilePath, _ identifier: String) -> Bool {
                path == reference.path || identifier == reference.identifier
            }
            let held = state.vaults.filter { isMeant($0, $1.vault.identifier) }.values.map(\.vault)
            let isClosed = state.closed.contains { isMeant($0, $1.identifier) }
            return (held + state.leaving.values, isClosed)
        }
        lock(vaults, closingAtMost: limits.closingTime)
        return isClosed || !vaults.isEmpty
    }

    /// Locks `vaults`, then closes those in which nothing can be read. Waits for the closing for `duration`
    /// at most.
    private func lock(_ vaults: [BlockingFileVault], closingAtMost duration: Duration) {
        for vault in vaults { vault.lock() }
        tellLocked(vaults)
        close(vaults, atMost: duration)
    }

    private func tellLocked(_ vaults: [BlockingFileVault]) {
        whenLocked.withLock { $0 }.tell(vaults)
    }

    /// Locks every vault at once, then closes those in which nothing can be read. Waits for the closing for
    /// `duration` at most.
    package func lockAll(closingAtMost duration: Duration = .zero) {
        let vaults = state.withLock { state in
            for number in state.unlocking.keys { state.unlocking[number]?.isAll = true }
            return state.vaults.values.map(\.vault) + state.leaving.values
        }
        lock(vaults, closingAtMost: duration)
    }

    /// Calls `body` with vaults that were just locked or released, on the thread that locked them.
    func tellOfLocks(_ body: @escaping @Sendable ([BlockingFileVault]) -> Void) {
        whenLocked.withLock { $0 = LockListener(tell: body) }
    }

    /// Stores the reason that vaults do not lock with the login session, for status requests.
    package func note(sessionObstacle: String?) {
        // Each vault's status has this text, and the statuses of all vaults go into one frame.
        let text = sessionObstacle.map { String(decoding: $0.utf8.prefix(256), as: UTF8.self) }
        state.withLock { $0.sessionObstacle = text }
    }

    /// Releases a vault: wipes all of its keys. Returns false when it is not held.
    func close(_ reference: VaultReference) -> Bool {
        let path = reference.path
        let (held, wasClosed) = state.withLock { state -> (Held?, Bool) in
            state.noteLock(of: VaultReference(path: path))
            if let closed = state.closed[path], reference.isMeant(closed.identifier) {
                state.closed[path] = nil
                return (nil, true)
            }
            return (state.vaults[path].flatMap { reference.isMeant($0.vault.identifier) ? $0 : nil }, false)
        }
        guard let held else { return wasClosed }
        letGo(of: held, at: path)
        return true
    }

    /// Does the same as ``closeIfReplaced(_:)`` after a read that threw `error`. A `locked` read may not have
    /// checked the file.
    func closeIfReplaced(_ reference: VaultReference, after error: TokenStorageError) -> Bool {
        switch error.code {
        case .locked:
            guard let vault = vault(reference) else { return false }
            do throws(TokenStorageError) {
                try vault.refresh()
                return false
            } catch {
                return closeIfReplaced(reference)
            }
        case .notFound, .notPermitted, .wrongDevice, .invalidArgument, .tooLarge: return false
        default: return closeIfReplaced(reference)
        }
    }

    /// Releases a vault that is no longer at its path: another vault was made there, or the file was removed
    /// and restored. Returns whether that is so. This is not a user's lock, so an unlock of the present file
    /// goes on.
    func closeIfReplaced(_ reference: VaultReference) -> Bool {
        guard let held = held(reference),
            let now = try? BlockingFileVault.open(
                at: reference.path, configuration: FileVaultConfiguration(stateDirectory: nil)),
            now.identifier != held.vault.identifier || Self.isGone(held.vault)
        else { return false }
        letGo(of: held, at: reference.path)
        return true
    }

    /// Wipes the keys of `held`, and stops holding it at `path`.
    private func letGo(of held: Held, at path: FilePath) {
        state.withLock { state in
            state.leaving[ObjectIdentifier(held.vault)] = held.vault
            if state.vaults[path]?.vault === held.vault { state.vaults[path] = nil }
            // The vault may have been closed meanwhile.
            if state.closed[path]?.identifier == held.vault.identifier { state.closed[path] = nil }
        }
        takeLeave(of: held.vault)
    }

    /// Wipes the keys of a vault that is leaving, and stops the answers with its data.
    func takeLeave(of vault: BlockingFileVault) {
        vault.close()
        tellLocked([vault])
        state.withLock { $0.leaving[ObjectIdentifier(vault)] = nil }
    }

    /// Whether the vault's file no longer exists.
    private static func isGone(_ vault: BlockingFileVault) -> Bool {
        do throws(TokenStorageError) {
            try vault.refresh()
            return false
        } catch {
            return error.code == .unavailable
        }
    }

    /// Releases every vault, for good.
    package func closeAll() {
        let vaults = state.withLock { state in
            state.hasEnded = true
            state.closed = [:]
            defer { state.vaults = [:] }
            return state.vaults.values.map(\.vault)
        }
        for vault in vaults { vault.close() }
    }
}
