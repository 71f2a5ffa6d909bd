internal import Synchronization
internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

// Appending: one lock, one write and one `fdatasync` for as many commits as wait.
extension VaultLog {
    /// Throws what keeps the vault from being written to, as far as that is known without the lock.
    func requireWritable() throws(TokenStorageError) {
        if let obstacle = location.readOnlyReason { throw obstacle.error }
        if let stop = stop.withLock({ $0 }), !stop.isDue { throw stop.error }
    }

    /// Takes the writers' lock of the file that the path leads to, brings the state up to date and cuts a
    /// crash's remainder. Use ``whileWriting(_:)``.
    private func lockForWriting() throws(TokenStorageError) -> any DiskFile {
        try requireWritable()
        let deadline = Deadline(after: lockTimeout)
        while true {
            let file = state.withLock { $0.file }
            try WriterLock(file: file).take(.exclusive, until: deadline)
            do throws(TokenStorageError) {
                if try settle(file), begin(writing: file) { return file }
            } catch {
                file.unlock()
                throw error
            }
            // Another file is at the path now, or this one was overwritten in place.
            file.unlock()
            try withLockedState { (state) throws(TokenStorageError) in try reload(&state) }
            if deadline.hasPassed { throw .file(.timedOut) }
        }
    }

    /// Keeps readers of this process from looking for another file. Returns false where one has done so since `file` was
    /// locked.
    private func begin(writing file: any DiskFile) -> Bool {
        isWriting.withLock { $0 += 1 }
        if state.withLock({ $0.file === file }) { return true }
        isWriting.withLock { $0 -= 1 }
        return false
    }

    /// Repairs a failure that stopped writing: moves the contents to a new file, which is locked as `file`
    /// is.
    private func mend(_ file: any DiskFile) throws(TokenStorageError) {
        guard let stop = stop.withLock({ $0 }) else { return }
        // The failure may have come while the lock was waited for.
        guard stop.isMendable else { throw stop.error }
        let start = ContinuousClock.now
        do throws(TokenStorageError) { try moveToNewFile(from: file) } catch {
            self.stop.withLock { $0?.putOff(after: start.duration(to: .now)) }
            // Another obstacle to the move is something that the user can act on.
            throw [.ioFailure, .readOnly].contains(error.code) ? stop.error : error
        }
        self.stop.withLock { $0 = nil }
    }

    /// Runs `body` with the state, passing its error on.
    func withLockedState<Value: Sendable>(
        _ body: (inout LogState) throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        let result = state.withLock { state in
            Result { () throws(TokenStorageError) in try body(&state) }
        }
        return try result.get()
    }

    /// Brings the state up to date under the lock; returns false when the file must be opened again.
    private func settle(_ file: any DiskFile) throws(TokenStorageError) -> Bool {
        try withLockedState { (state) throws(TokenStorageError) in
            guard state.file === file else { return false }
            // If the directory was made again around the file, new files would go into the old directory.
            try location.requireDirectory()
            let there = try attributesInPlace(of: state.identity)
            guard there.identity == state.identity else { return false }
            // Nothing more is written where other users may read it.
            try there.requirePrivate(location.path)
            let anchored = try anchor.read(requiringNotSettledAgainst: state.epoch)
            let tail = state.tail
            let probe = try onDisk { () throws(SystemFailure) in
                try file.read(Frame.checksumLength + Frame.prefixLength, at: tail - Frame.checksumLength)
            }
            guard probe.starts(with: state.trailer), probe.count >= Frame.checksumLength else { return false }
            let isQuiet =
                probe.count == Frame.checksumLength + Frame.prefixLength
                && isAllZero(probe, in: Frame.checksumLength..<probe.count)
            // Another writer may have made room, or given some back.
            state.size = max(there.size, tail)
            if isQuiet, state.isTailSettled, anchored == state.seen || anchored == nil { return true }
            var scanner = LogScanner(file: file, codec: codec, chunk: 64 << 10)
            let found = try scanner.scan(from: tail, previous: state.chain)
            if !found.frames.isEmpty { noteOthers() }
            try apply(found, to: &state)
            // Another process moved the anchor: either to a place that this log has reached since, or to a
            // place where this log never was.
            guard descends(&state, from: anchored) else { return false }
            state.size = try onDisk { () throws(SystemFailure) in try file.attributes().size }
            var stop = found.stop
            if stop == .clean, try !scanner.isZeroToEnd(from: state.tail) { stop = .failing(at: state.tail) }
            if case .failing(let place) = stop {
                try TailClassifier(file: file, codec: codec).requireTorn(at: place)
                if let anchored, anchored.epoch == state.epoch, anchored.sequence > state.sequence {
                    throw .damage(at: place, .acknowledgedFrame)
                }
                try cut(&state)
            }
            // Writes of other processes are visible, but perhaps not durable. Frames written from here on
            // declare everything before them durable. The rename of a process that died must not be undone
            // under these frames.
            let (location, isNew) = (location, !state.isTailSettled)
            try onDisk { () throws(SystemFailure) in
                try file.synchronize()
                if isNew { try location.directory.synchronize() }
            }
            state.isTailSettled = true
            return true
        }
    }

    /// Replaces a torn tail by zeros, and keeps its bytes in a file beside the vault.
    private func cut(_ state: inout LogState) throws(TokenStorageError) {
        let file = state.file
        let tail = state.tail
        let size = state.size
        guard size > tail else { return }
        guard try TornTail(file: file, codec: codec, start: tail, end: size).cut(keepingIn: location) else {
            return
        }
        hasCutTail.withLock { $0 = true }
        try onDisk { () throws(SystemFailure) in try file.synchronize() }
    }

    /// Runs `body` with the writers' lock and releases it, also when `body` moved the vault to a new file. The keys of the
    /// keybag in use were checked.
    func whileWriting<Value>(
        _ body: (any DiskFile) throws(TokenStorageError) -> Value
    ) throws(TokenStorageError) -> Value {
        let file = try lockForWriting()
        defer {
            let current = state.withLock { $0.file }
            current.unlock()
            if current !== file { file.unlock() }
        }
        // Readers of this process need no lock while it is held for writing, and would wait for their own
        // process.
        defer { isWriting.withLock { $0 -= 1 } }
        try checkKeybag()
        try mend(file)
        return try body(state.withLock { $0.file })
    }

    /// Writes the commits of `requests`, and those that `more` gives meanwhile, as many in one group as fit.
    /// Reports each outcome, after `beforeTelling` for each group.
    func perform(
        _ requests: [WriteRequest], more: () -> [WriteRequest] = { [] }, beforeTelling: () -> Void = {}
    ) {
        var begun = requests.filter { $0.begin() }
        guard !begun.isEmpty else { return }
        do throws(TokenStorageError) {
            while !begun.isEmpty {
                try whileWriting { _ throws(TokenStorageError) in
                    while !begun.isEmpty, write(&begun, more, beforeTelling) {}
                }
            }
        } catch {
            for request in begun { request.finish(.failure(error)) }
        }
    }

    /// Writes the first of `requests`, with those that `more` gives meanwhile, as one group, and takes them
    /// out. Returns false when the outcome is unknown, and thus what the next group would follow: taking the
    /// lock again decides.
    private func write(
        _ requests: inout [WriteRequest], _ more: () -> [WriteRequest], _ beforeTelling: () -> Void
    ) -> Bool {
        var group = RequestGroup(after: self)
        var taken = 0
        while !group.isFull {
            if taken == requests.count {
                let others = more()
                if others.isEmpty { break }
                requests += others.filter { $0.begin() }
            } else {
                group.add(requests[taken])
                taken += 1
            }
        }
        requests.removeFirst(taken)
        let outcome = group.write(beforeTelling: beforeTelling)
        requests = outcome.left + requests
        return !outcome.isUnknown
    }

    /// Writes a group durably, moves the anchor, and erases what the group deleted. The keys of the keybag in use were
    /// checked.
    func append(_ group: inout LogGroup, to file: any DiskFile) throws(TokenStorageError) {
        if let stop = stop.withLock({ $0 }) { throw stop.error }
        try requireChecked(file)
        try makeRoom(for: group, in: file)
        do {
            var place = group.start
            for part in group.parts {
                try file.write(part, at: place)
                place += part.count
            }
        } catch {
            try repair(group, in: file, after: error)
        }
        do {
            try file.synchronize()
        } catch {
            try repair(group, in: file, after: error)
        }
        try requireInPlace()
        let added = group
        try withLockedState { (state) throws(TokenStorageError) in
            // Otherwise `state` does not contain the frames.
            guard state.file === file else { throw .file(.outcomeUnknown, .ancestry(.tookPlace)) }
            try apply(added.frames, trailer: added.trailer, to: &state)
            try advanceAnchor(&state)
        }
        // The writer of the index in use came no further, or an attacker changed the pointer.
        if state.withLock({ $0.isPointerDue }) { writePointer(to: file) }
        erase(added.deleted, in: added)
    }

    /// Throws `locked` unless the state is that of `file`, which this process has locked, and its keybag was checked.
    private func requireChecked(_ file: any DiskFile) throws(TokenStorageError) {
        try withLockedState { (state) throws(TokenStorageError) in
            guard state.file === file, isChecked(state.keybag) else {
                throw .file(.locked, .changedMeanwhile(.keys))
            }
        }
    }

    /// Throws `outcomeUnknown` when the written file is no longer the vault. Between the look before and the
    /// last byte, it may have been moved and a copy put in its place. Or a move to a new file that was
    /// reported as failed had succeeded.
    func requireInPlace() throws(TokenStorageError) {
        let identity = state.withLock { $0.identity }
        do throws(TokenStorageError) {
            guard try attributesInPlace(of: identity).identity != identity else { return }
        } catch {
            // A failure to look says nothing about the file's place.
            guard error.code == .unavailable else { return }
            var error = error
            error.code = .outcomeUnknown
            throw error
        }
        throw .file(.outcomeUnknown, .ancestry(.tookPlace))
    }

    /// Moves the anchor on to `state`, which is durable. Throws `outcomeUnknown` when another file was the vault meanwhile.
    func advanceAnchor(_ state: inout LogState) throws(TokenStorageError) {
        switch anchor.advance(to: state, after: state.seen) {
        case .moved(let slot): state.seen = slot
        case .stuck: break
        case .overtaken: throw .file(.outcomeUnknown, .ancestry(.tookPlace))
        }
        state.isReadingDue = false
        state.isAnchored = location.state != nil
    }

    /// Repairs a failed write or sync, whose bytes may be in the file, on the disk, both or neither. Zeros
    /// are written over them and synced: then the commit did not happen. If that fails too, the live items
    /// move to a new file. If that fails, this process writes no more until they do.
    private func repair(
        _ group: LogGroup, in file: any DiskFile, after failure: SystemFailure
    ) throws(TokenStorageError) -> Never {
        do {
            do throws(SystemFailure) { try file.writeZeros(group.start..<group.end) } catch {
                // A limit on the size of files ends both at the same byte: the bytes before it are zeros now.
                guard error.errno == .fileTooLarge, failure.errno == .fileTooLarge else { throw error }
            }
            try file.synchronize()
        } catch {
            do throws(TokenStorageError) {
                // The failed write may be where the notice to readers would go.
                try moveToNewFile(from: file, tellingReaders: .afterwards)
            } catch {
                stopWriting(after: failure)
                throw .file(.outcomeUnknown, .systemCall(.init(failure)))
            }
        }
        var error = TokenStorageError.system(failure)
        if error.code == .unavailable || error.code == .notAVault { error.code = .ioFailure }
        throw error
    }

    /// Stops this process's writes after a failure that leaves the disk's contents open, until the contents
    /// move to a new file.
    func stopWriting(after failure: SystemFailure) { stop.withLock { $0 = WritingStop(after: failure) } }
}
