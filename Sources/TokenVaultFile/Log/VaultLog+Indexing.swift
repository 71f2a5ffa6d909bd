internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

// The writer that has just committed writes the index block, when many frames have come since the last one.
extension VaultLog {
    /// Keeps the file small and quick to open: by compaction or a new index, when one is worth it.
    /// Acknowledged commits do not depend on either.
    func tidy() {
        guard location.readOnlyReason == nil else { return }
        compactIfWorthIt()
        guard wantsIndex else { return }
        do throws(TokenStorageError) {
            try whileWriting { file throws(TokenStorageError) in
                // Another process may have written an index meanwhile.
                if wantsIndex { try writeIndex(to: file) }
            }
        } catch {
            // A page of the index in use is damaged: the next one is made from the log itself.
            if error.code == .corrupt, (try? withLockedState(loader.rebuildIndex)) != nil { return }
            guard error.reason != .ancestry(.tookPlace) else { return }
            indexPutOff.withLock { $0 = $0 ?? "no index could be written (\(error.code))" }
        }
    }

    private var wantsIndex: Bool {
        state.withLock { state in
            state.framesSinceIndex > max(tailBound, state.index.roughCount / 64)
                && state.index.mostRecords <= IndexFormat.mostPages * IndexFormat.recordsPerPage
        } && importsUnderWay.withLock { $0 == 0 } && indexPutOff.withLock { $0 == nil }
            && stop.withLock { $0 == nil }
    }

    /// Writes an index block behind the log, and behind it a checkpoint, which says that the block is
    /// durable. Then the pointer leads to it.
    private func writeIndex(to file: any DiskFile) throws(TokenStorageError) {
        let written = try writePages(to: file)
        try take(written.frames, trailer: written.trailer)
        try appendCheckpoint(to: file)
        writePointer(to: file)
    }

    // Separate from the rest: while the state is held here, its first change would copy all of its index.
    private func writePages(
        to file: any DiskFile
    ) throws(TokenStorageError) -> (frames: [ScannedFrame], trailer: [UInt8]) {
        let held = state.withLock { $0 }
        let most = IndexFormat.length(ofPages: IndexFormat.pages(for: held.index.mostRecords))
        let room = held.tail + most + IndexSummary.roomForFrame(pages: most / IndexFormat.pageLength)
        do {
            if room + VaultFormat.reserve > held.size { try extend(file, for: room, from: held.size) }
        } catch {
            throw .system(error)
        }
        var writer = IndexWriter(after: held, codec: codec)
        do throws(TokenStorageError) {
            try held.index.forEachRecord { (record) throws(TokenStorageError) in try writer.add(record) }
            try writer.finish()
            try onDisk { () throws(SystemFailure) in try file.synchronize() }
        } catch {
            try truncate(from: held.tail, to: max(room, writer.end), in: file)
            throw error
        }
        return (writer.frames, writer.trailer)
    }

    /// Takes over the durable frames that were written behind the log.
    private func take(_ frames: [ScannedFrame], trailer: [UInt8]) throws(TokenStorageError) {
        guard let end = frames.last?.end else { return }
        try requireInPlace()
        try withLockedState { (state) throws(TokenStorageError) in
            try apply(ScanResult(frames: frames, end: end, trailer: trailer, stop: .clean), to: &state)
            try advanceAnchor(&state)
        }
    }

    private func appendCheckpoint(to file: any DiskFile) throws(TokenStorageError) {
        let held = state.withLock { $0 }
        let sealed = try codec.seal(
            FrameDraft(type: .checkpoint), generation: held.sequence, groupStart: held.tail,
            previous: held.chain, endsCommit: true)
        let end = held.tail + sealed.bytes.count
        do {
            if end + VaultFormat.reserve > held.size { try extend(file, for: end, from: held.size) }
            try file.write(sealed.bytes, at: held.tail)
            try file.synchronize()
        } catch {
            try truncate(from: held.tail, to: end, in: file)
            throw .system(error)
        }
        try take(
            [ScannedFrame(offset: held.tail, header: sealed.header, chain: sealed.chain)],
            trailer: Array(sealed.bytes.suffix(Frame.checksumLength)))
    }

    /// Writes zeros after a failed write or sync, over bytes that may be in the file, the disk, both or
    /// neither.
    private func truncate(from start: Int, to end: Int, in file: any DiskFile) throws(TokenStorageError) {
        do {
            let end = min(end, try file.attributes().size)
            try file.writeZeros(start..<max(start, end))
            try file.synchronize()
        } catch {
            stopWriting(after: error)
            throw .system(error)
        }
    }

    /// Points readers to the index block in use. The block is durable, and the pointer need not be.
    func writePointer(to file: any DiskFile) {
        guard let offset = state.withLock({ $0.index.block?.offset }) else { return }
        try? file.write(IndexPointer(offset: offset).encoded(), at: VaultFormat.pointerStart)
        state.withLock { $0.isPointerDue = false }
    }
}
