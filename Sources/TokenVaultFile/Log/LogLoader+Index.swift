internal import TokenVaultCore
internal import TokenVaultPlatform

// Reading by the index block: the first frame, the frame that the pointer leads to, and what follows it.
extension LogLoader {
    /// Returns the state of `file`. Returns `nil` when its pointer, index block or anchor does not fit, or
    /// the index goes further than the commit `seen`. Then the whole log decides.
    ///
    /// Frames in front of the index block are not looked at. Without the log key, an attacker cannot make an
    /// index, nor change an entry's frame without the item failing to open. The chain begins again with the
    /// block, which names the epoch, its own place and what the log held there.
    func readByIndex(
        _ file: any DiskFile, _ attributes: FileAttributes, anchored: AnchorSlot?, seen: UInt64?,
        observer: Observer
    ) throws(TokenStorageError) -> Loaded? {
        guard let offset = try pointedIndex(in: file) else { return nil }
        do throws(TokenStorageError) {
            return try readByIndex(
                at: offset, file, attributes, anchored: anchored, seen: seen, observer: observer)
        } catch {
            if error.code.mayBeOfOldFile { return nil }
            throw error
        }
    }

    private func readByIndex(
        at offset: Int, _ file: any DiskFile, _ attributes: FileAttributes, anchored: AnchorSlot?,
        seen: UInt64?, observer: Observer
    ) throws(TokenStorageError) -> Loaded? {
        var front = LogScanner(file: file, codec: codec, chunk: 4 << 10)
        guard let first = try front.frame(at: VaultFormat.logStart),
            first.header.type == RecordType.genesis.rawValue,
            first.header.previous == FrameCodec.chainStart, try front.isWhole(first)
        else { return nil }
        let genesis = try genesis(of: first, file: file)
        var scanner = LogScanner(file: file, codec: codec, chunk: 64 << 10)
        guard let (last, block) = try index(at: offset, in: file, attributes.size, epoch: genesis.epoch),
            seen.map({ block.summary.sequence <= $0 }) ?? true
        else { return nil }
        let found = try scanner.scan(from: last.end, previous: last.chain)
        // Only later frames say that the pages were durable: the pages are not read now.
        guard let newest = found.frames.last, newest.header.groupStart >= UInt64(last.end) else { return nil }
        var state = LogState(
            file: file, identity: attributes.identity, size: attributes.size, tail: found.end,
            trailer: found.trailer, chain: last.chain, head: last.chain,
            sequence: max(genesis.baseSequence, block.summary.sequence), epoch: genesis.epoch,
            keybag: block.summary.keybag, baseSequence: genesis.baseSequence)
        state.frontChain = first.chain
        state.isBeginningWhole = true
        if let second = try ancestryFrame(behind: first, &front) { state.takeAncestry(second) }
        state.index = LogIndex(block: block)
        state.index.reserve(found.frames.count)
        var metHead = anchored?.head == last.chain
        for frame in found.frames {
            try apply(frame, to: &state)
            if frame.header.isItem { try observer(frame, file) }
            if let anchored, frame.chain == anchored.head { metHead = true }
        }
        if let anchored {
            // Only the whole log can be compared with an anchor in front of the index.
            try check(&state, against: anchored, metHead: metHead, stop: found.stop)
        }
        let isClean = try scanner.isZeroToEnd(from: state.tail)
        return Loaded(
            state: state,
            stop: found.stop == .clean && !isClean ? .failing(at: state.tail) : found.stop)
    }

    /// Returns the place that the pointer names; `nil` where it is not whole.
    func pointedIndex(in file: any DiskFile) throws(TokenStorageError) -> Int? {
        let sector = try onDisk { () throws(SystemFailure) in
            try file.read(IndexPointer.length, at: VaultFormat.pointerStart)
        }
        return (try? IndexPointer(decoding: sector))?.offset
    }

    /// Returns the index block whose last frame is at `offset` in a file of `size` bytes; `nil` where none is.
    func index(
        at offset: Int, in file: any DiskFile, _ size: Int, epoch: Epoch
    ) throws(TokenStorageError) -> (last: ScannedFrame, block: IndexReader)? {
        var scanner = LogScanner(file: file, codec: codec, chunk: 4 << 10)
        guard offset > VaultFormat.logStart, offset + Frame.overhead <= size, offset.isMultiple(of: 8),
            let last = try scanner.frame(at: offset), last.header.endsCommit,
            let block = try IndexReader(last, in: file, codec: codec, epoch: epoch)
        else { return nil }
        return (last, block)
    }

    /// Releases the entries in memory that an index block has, once `frame`, the next frame, says that the
    /// block is durable.
    func takeIndex(before frame: ScannedFrame, in state: inout LogState) throws(TokenStorageError) {
        guard let last = state.newIndex else { return }
        state.newIndex = nil
        guard frame.header.groupStart >= UInt64(last.end),
            let block = try IndexReader(last, in: state.file, codec: codec, epoch: state.epoch)
        else { return }
        state.index = LogIndex(block: block)
        state.framesSinceIndex = 0
        state.isPointerDue = true
    }

    /// Replaces an index with a damaged page by the log's own contents, up to where `state` knows it.
    func rebuildIndex(of state: inout LogState) throws(TokenStorageError) {
        var scanner = LogScanner(file: state.file, codec: codec, chunk: 256 << 10)
        var walked = state
        walked.index = LogIndex()
        walked.framesSinceIndex = 0
        walked.newIndex = nil
        walked.trail = Ancestry()
        try scanner.walk(from: VaultFormat.logStart, to: state.tail, previous: FrameCodec.chainStart) {
            (frame) throws(TokenStorageError) in
            try apply(frame, to: &walked, usingIndex: false)
        }
        guard walked.chain == state.chain else { throw .damage(at: state.tail, .frameOutOfPlace) }
        state.index = walked.index
        state.framesSinceIndex = walked.framesSinceIndex
        state.trail = walked.trail
        state.isWalked = true
    }
}
