internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultPlatform

// Zeros are kept ahead of the log, so that a commit changes no size, and deleting works on a full disk.
extension VaultLog {
    /// Makes the group fit in front of the reserve; deletions may use the reserve.
    func makeRoom(for group: LogGroup, in file: any DiskFile) throws(TokenStorageError) {
        let size = state.withLock { $0.size }
        guard group.end + VaultFormat.reserve > size else { return }
        do {
            // Space allocated on another machine may be a promise only.
            try extend(file, for: group.end, from: size, isWrittenNext: !location.directory.isRemote)
        } catch {
            let available = state.withLock { $0.size }
            let needed = group.end + (group.mayUseReserve ? 0 : VaultFormat.reserve)
            guard needed <= available else {
                truncate(file, from: size)
                throw .system(error)
            }
        }
    }

    /// Gives back the room behind `size`, which is zeros that stay unused: on a full disk others wait for it.
    private func truncate(_ file: any DiskFile, from size: Int) {
        guard (try? file.resize(to: size)) != nil else { return }
        state.withLock { $0.size = size }
    }

    /// Puts zeros behind the file's end, which is at `size`: enough for a log that goes up to `end`, with the
    /// reserve behind it. Where all of it up to `end` is written next, that part gets its room on the disk
    /// and is not written twice.
    func extend(
        _ file: any DiskFile, for end: Int, from size: Int, isWrittenNext: Bool = false
    ) throws(SystemFailure) {
        let wanted = end + VaultFormat.reserve + VaultFormat.headroom(for: end)
        var reached = size
        do {
            if isWrittenNext, reached < end {
                try file.allocate(reached..<end)
                reached = end
            }
            try file.writeZeros(reached..<max(reached, wanted))
            state.withLock { $0.size = max($0.size, wanted) }
        } catch {
            // The written zeros may be enough; the file's size tells how far the write came.
            if let reached = try? file.attributes().size {
                state.withLock { $0.size = max($0.size, reached) }
            }
            throw error
        }
    }
}
