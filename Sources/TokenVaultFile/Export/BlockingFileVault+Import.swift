internal import Synchronization
public import SystemPackage
public import TokenVaultCore
internal import TokenVaultCrypto
package import TokenVaultPlatform

extension BlockingFileVault {
    /// Stores the items of an export in their services, with their labels, attributes, policies, expiries and
    /// dates. The whole file is authenticated before anything is stored; then the items are stored in commits
    /// of up to a thousand. A second call goes on where the first stopped: items that are there already stay
    /// unchanged.
    ///
    /// An export of another program may ask for up to 12 passes over 2 GiB to derive its key, as a vault's
    /// slots together may. More is `corrupt`; ``KeyDerivationCost`` describes the cost.
    ///
    /// The vault must be unlocked (`locked`). Throws `wrongPassphrase`, `unsupportedFormat`, and `corrupt`
    /// when anything of the file was changed, added or cut off. Throws `alreadyExists` when `rule` is to fail
    /// and a key has another value here: then nothing was stored. Also throws the errors of storing. A file
    /// that is a pipe is kept in a nameless file beside the vault meanwhile, still sealed. `progress` gets
    /// the items done and the total.
    public func importItems(
        from path: FilePath, passphrase: Secret, onConflict rule: ImportConflictRule = .fail,
        progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> ImportReport {
        try during("import") { () throws(TokenStorageError) in
            let beside = directoryForSpooling
            let file: any DiskFile
            do throws(SystemFailure) {
                file = try StreamFile.reading(path, spoolingIn: beside, deadline: configuration.deadline)
            } catch {
                guard error.errno == .noSuchFileOrDirectory else { throw Self.streamFailure(error) }
                throw .file(.unavailable, .missing(.export))
            }
            return try importItems(file, passphrase, rule, progress)
        }
    }

    /// Imports from an open descriptor, read to its end.
    public func importItems(
        from descriptor: FileDescriptor, passphrase: Secret, onConflict rule: ImportConflictRule = .fail,
        progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> ImportReport {
        try during("import") { () throws(TokenStorageError) in
            let beside = directoryForSpooling
            let file: any DiskFile
            do throws(SystemFailure) {
                file = try StreamFile.spooled(
                    descriptor.rawValue, in: beside, deadline: configuration.deadline)
            } catch {
                throw Self.streamFailure(error)
            }
            return try importItems(file, passphrase, rule, progress)
        }
    }

    /// Stores `items` in their services as one commit, or none of them. The generation in their metadata has
    /// no meaning here; the dates are kept.
    ///
    /// The vault must have been unlocked once (`locked`). Throws `alreadyExists` when `rule` is to fail and a
    /// key has another value here. Throws `invalidArgument` for a key that occurs twice, and the errors of a
    /// commit.
    public func importItems(
        _ items: [TokenItem], onConflict rule: ImportConflictRule = .fail
    ) throws(TokenStorageError) -> ImportReport {
        try during("import") { () throws(TokenStorageError) in
            let session = try session()
            let check = Validation(operation: "import", backend: TokenStorageError.fileBackend)
            let deadline = configuration.deadline
            let parts = try Parallel.map(items.count, least: 256) { (range) throws(TokenStorageError) in
                var names: [ItemIdentifier] = []
                names.reserveCapacity(range.count)
                for position in range {
                    if position.isMultiple(of: 64) { try deadline.check() }
                    try check.check(items[position])
                    let metadata = items[position].metadata
                    names.append(
                        try session.log.codec.item(service: metadata.service, key: metadata.key))
                }
                return (names, inOrder: names.sorted())
            }
            if Self.haveOneTwice(parts.map(\.inOrder)) {
                throw .file(.invalidArgument, .limit(.importedKeyTwice))
            }
            let names = parts.count == 1 ? parts[0].0 : parts.flatMap(\.0)
            return try session.importItems(items, named: names, rule)
        }
    }

    /// Returns whether an element occurs twice in lists each of which is in order.
    private static func haveOneTwice(_ lists: [[ItemIdentifier]]) -> Bool {
        for (place, list) in lists.enumerated() {
            if zip(list, list.dropFirst()).contains(where: ==) { return true }
            for other in lists[..<place] {
                var (next, there) = (0, 0)
                while next < list.count, there < other.count {
                    if list[next] == other[there] { return true }
                    if list[next] < other[there] { next += 1 } else { there += 1 }
                }
            }
        }
        return false
    }

    /// Returns the error for a failure that may be of the stream rather than of the disk.
    private static func streamFailure(_ failure: SystemFailure) -> TokenStorageError {
        switch failure.call {
        case "poll" where failure.errno == .timedOut:
            .file(.timedOut, .deadline(.export))
        case "read", "poll":
            .file(.ioFailure, .inputUnreadable(failure.errno.rawValue))
        default: .system(failure)
        }
    }

    private var directoryForSpooling: FilePath {
        let parent = path.parent
        return parent.isEmpty ? "." : parent
    }

    package func importItems(
        _ file: any DiskFile, _ passphrase: Secret, _ rule: ImportConflictRule,
        _ progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> ImportReport {
        let session = try session()
        guard session.ring.isUnlocked else { throw .file(.locked) }
        let reader = try ExportReader(file, passphrase: passphrase, within: configuration.derivationLimit)
        var count = 0
        var names = Set<ItemIdentifier>()
        var differing = 0
        try reader.readItems { (item) throws(TokenStorageError) in
            count += 1
            if count.isMultiple(of: 64) { try configuration.deadline.check(.deadline(.importing)) }
            let metadata = item.metadata
            let name = try session.log.codec.item(service: metadata.service, key: metadata.key)
            guard names.insert(name).inserted else {
                throw .file(.corrupt, .damaged(.exportedKeyTwice))
            }
            guard rule == .fail, let there = try session.item(name) else { return }
            if !there.isSame(as: item) { differing += 1 }
        }
        guard differing == 0 else {
            throw .file(.alreadyExists, .differingValues(differing))
        }
        session.log.importsUnderWay.withLock { $0 += 1 }
        defer {
            session.log.importsUnderWay.withLock { $0 -= 1 }
            try? session.queue.alone { session.log.tidy() }
        }
        var batch = ImportBatch(session: session, rule: rule)
        var done = 0
        try reader.readItems { (item) throws(TokenStorageError) in
            if done.isMultiple(of: 64) {
                try configuration.deadline.check(
                    .importUnfinished(done: batch.report.handled, of: count))
                progress?(done, count)
            }
            try batch.add(item)
            done += 1
        }
        try batch.finish()
        progress?(count, count)
        return batch.report
    }
}
