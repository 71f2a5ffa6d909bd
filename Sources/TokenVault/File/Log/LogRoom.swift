internal import Synchronization
internal import TokenVaultPlatform

// Zeros are kept ahead of the log, so that a commit changes no size, and deleting works on a full disk.
extension VaultLog {
    /// Sees to it that the group fits in front of the reserve; deletions may use the reserve.
    func makeRoom(for group: LogGroup, in file: any DiskFile) throws(TokenStorageError) {
        let size = state.withLock { $0.size }
        guard group.end + VaultFormat.reserve > size else { return }
        do {
            try extend(file, for: group.end, from: size)
        } catch {
            let available = state.withLock { $0.size }
            let needed = group.end + (group.mayUseReserve ? 0 : VaultFormat.reserve)
            guard needed <= available else { throw .system(error) }
        }
    }

    /// Puts zeros behind the file's end, which is at `size`: enough for a log that goes up to `end`, with the
    /// reserve behind it.
    func extend(_ file: any DiskFile, for end: Int, from size: Int) throws(SystemFailure) {
        let wanted = end + VaultFormat.reserve + VaultFormat.headroom(for: end)
        var reached = size
        do {
            var zeros = [UInt8](repeating: 0, count: max(0, min(wanted - reached, 1 << 20)))
            while reached < wanted {
                if wanted - reached < zeros.count { zeros.removeLast(zeros.count - (wanted - reached)) }
                try file.write(zeros, at: reached)
                reached += zeros.count
            }
            state.withLock { $0.size = max($0.size, reached) }
        } catch {
            // What was written of the zeros may stay; the file's size tells how far it came.
            if let reached = try? file.attributes().size {
                state.withLock { $0.size = max($0.size, reached) }
            }
            throw error
        }
    }
}
