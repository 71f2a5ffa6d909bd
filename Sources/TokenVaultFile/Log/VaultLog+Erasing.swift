internal import Synchronization
internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultPlatform

extension VaultLog {
    /// Erases the values of deleted items. A small vault is compacted, which leaves nothing behind. In a
    /// large vault, or on a full disk, the dead bodies are overwritten with zeros. The deletion itself is
    /// durable by now, so that no failure here may deny it.
    func erase(_ deleted: [ItemIdentifier], in group: LogGroup) {
        guard !deleted.isEmpty else { return }
        // A crash during a move to a new file, or during a write, may have left files that have the values as
        // well.
        for name in [Self.temporaryName(for: location.name), TornTail.name(for: location.name)] {
            try? location.directory.remove(name)
        }
        let (file, size) = state.withLock { ($0.file, $0.tail) }
        if size < VaultFormat.compactionFloor {
            do throws(TokenStorageError) {
                try moveToNewFile(from: file)
                return
            } catch {
                // The disk failed when the new file had its name already: nothing more is written.
                if stop.withLock({ $0 }) != nil { return }
            }
        }
        let dead: [IndexEntry]
        do throws(TokenStorageError) {
            dead = try withLockedState { (state) throws(TokenStorageError) in
                try usingIndex(of: &state) { (index) throws(TokenStorageError) in
                    var dead: [IndexEntry] = []
                    for item in deleted { dead += try index.takeSuperseded(item) }
                    return dead
                }
            }
        } catch {
            compactionPutOff.withLock { $0 = "a deleted value could not be erased yet (\(error.code))" }
            return
        }
        // The frames written last are checked for a crash's torn write. Before a value of this very group is
        // erased, a frame behind it says that the group was whole.
        if dead.contains(where: { $0.offset >= group.start }) {
            var checkpoint = LogGroup(after: self)
            do throws(TokenStorageError) {
                _ = try checkpoint.add([FrameDraft(type: .checkpoint)])
                try append(&checkpoint, to: file)
            } catch {
                compactionPutOff.withLock { $0 = "a deleted value could not be erased yet (\(error.code))" }
                return
            }
        }
        do {
            for entry in dead {
                try file.write([UInt8](repeating: 0, count: entry.contentLength), at: entry.contentStart)
            }
            try file.synchronize()
        } catch {
            // The deletion itself is durable. Its old value will go with the next compaction.
            compactionPutOff.withLock {
                $0 = "a deleted value could not be erased yet (\(error.call): \(error.errno.description))"
            }
        }
    }
}
