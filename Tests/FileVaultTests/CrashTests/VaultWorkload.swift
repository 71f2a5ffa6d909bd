import SystemPackage
import TokenVault
import TokenVaultPlatform

/// A scripted use of a vault, whose crashes are explored.
struct VaultWorkload: Sendable {
    let name: String
    /// Methods whose slots come and go.
    var methods: [String] = []
    /// The method that always opens.
    var key: String? = "first"
    /// What the disk holds at first.
    var start: @Sendable () throws -> DiskContents = { try SimulatedVault.fresh() }
    /// What is in it.
    var initial: Facts = [:]
    /// Random mixtures at each crash point.
    var samples = 40
    /// At most this many crash states: each costs a key derivation or more where passphrases are tried.
    var limit = Int.max
    /// How many frames may follow the index block; `nil` for what vaults have.
    var tailBound: Int?
    let run: @Sendable (Script) throws -> Void

    /// Runs the workload on a disk that may lie; returns what happened.
    func history(from start: DiskContents, lie: Lie? = nil) throws -> History {
        let disk = SimulatedDisk(start)
        let history = History(disk: disk, initial: initial)
        try run(Script(disk: disk, history: history, liar: lie.map { LyingDisk($0) }, tailBound: tailBound))
        return history
    }

    var subject: VaultSubject { VaultSubject(methods: methods, key: key, tailBound: tailBound) }
}

/// The calls of a workload, recorded with what they are to do.
struct Script {
    let disk: SimulatedDisk
    let history: History
    var liar: LyingDisk?
    var tailBound: Int?

    var location: VaultLocation {
        let (vault, state) = (disk.directory(0), disk.directory(1))
        return liar.map { SimulatedVault.location($0.directory(vault), $0.directory(state)) }
            ?? SimulatedVault.location(vault, state)
    }

    /// Opens the vault, as a process of its own would.
    func open(key: String = "first") throws -> Writer {
        Writer(
            vault: try SimulatedVault.open(at: location, key: key, tailBound: tailBound), history: history)
    }

    /// Has the next operation of this kind fail.
    func fail(
        _ kind: DiskFault.Kind, _ errno: Errno, directory: Int = 0, skipping: Int = 0, times: Int = 1,
        bytesWritten: Int = 0
    ) {
        disk.inject(
            DiskFault(
                kind: kind, directory: directory, skipping: skipping, times: times, errno: errno,
                bytesWritten: bytesWritten))
    }
}

/// One opened vault of a workload.
struct Writer {
    let vault: BlockingFileVault
    let history: History

    var storage: any BlockingTokenStorage { vault.storage(service: SimulatedVault.service) }

    func store(_ key: String, _ value: String) {
        history.perform("store \(key)", [key: value]) {
            try generation { try storage.store(token: value, for: TokenKey(key)).rawValue }
        }
    }

    func delete(_ key: String) {
        history.perform("delete \(key)", [key: nil]) {
            try generation { try storage.commit([.delete(TokenKey(key))]).generation?.rawValue }
        }
    }

    /// A store that may fail: then nothing is stored, unless the outcome is unknown.
    func storeOnFailingDisk(_ key: String, _ value: String) {
        history.perform("store \(key)", [key: value]) {
            do throws(TokenStorageError) {
                return try storage.store(token: value, for: TokenKey(key)).rawValue
            } catch  where error.code == .outcomeUnknown {
                throw OutcomeUnknown(generation: error.generation?.rawValue)
            } catch {
                throw Refused()
            }
        }
    }

    /// A deletion that may fail: then nothing is deleted, unless the outcome is unknown.
    func deleteOnFailingDisk(_ key: String) {
        history.perform("failing delete \(key)", [key: nil]) {
            do throws(TokenStorageError) {
                return try storage.commit([.delete(TokenKey(key))]).generation?.rawValue
            } catch  where error.code == .outcomeUnknown {
                throw OutcomeUnknown(generation: error.generation?.rawValue)
            } catch {
                throw Refused()
            }
        }
    }

    /// One commit of several stores (`nil`: deletes).
    func commit(_ changes: [(String, String?)]) {
        history.perform("commit", Dictionary(uniqueKeysWithValues: changes)) {
            try generation {
                try storage.commit(
                    changes.map { key, value in
                        value.map { .store(Secret(utf8: $0), for: TokenKey(key)) } ?? .delete(TokenKey(key))
                    }
                ).generation?.rawValue
            }
        }
    }

    /// A store that is to fail with one of `codes`, having changed nothing; or to be of unknown outcome.
    func storeFailing(_ key: String, _ value: String, _ codes: Set<TokenStorageError.Code>) {
        history.perform("failing store \(key)", [key: value]) {
            do throws(TokenStorageError) {
                _ = try storage.store(token: value, for: TokenKey(key))
            } catch  where error.code == .outcomeUnknown {
                throw OutcomeUnknown(generation: error.generation?.rawValue)
            } catch  where codes.contains(error.code) {
                throw Refused()
            }
            throw SimulatedVault.Complaint("a store succeeded on a failing disk")
        }
    }

    func compact() {
        history.perform("compact", [:]) {
            _ = try vault.compact()
            return nil
        }
    }

    func keep(_ count: Int) {
        history.perform("keep \(count)", [:]) {
            try vault.keepReplacedValues(count)
            return nil
        }
    }

    /// Undoes the newest store of `key`, which brings `value` back.
    func undo(_ key: String, backTo value: String) {
        history.perform("undo \(key)", [key: value]) {
            try generation {
                try vault.storage(service: SimulatedVault.service).undo(TokenKey(key)).generation?.rawValue
            }
        }
    }

    /// A compaction that is to fail: it changes nothing in any case.
    func compactFailing() {
        do {
            _ = try vault.compact()
            history.complain("a compaction succeeded on a failing disk")
        } catch {}
    }

    /// Adding a slot on a failing disk. Where it failed decides whether the slot is there: the error says
    /// that it failed, so it must not be, unless the outcome is unknown.
    func addSlotFailing(_ name: String) {
        history.perform("failing slot \(name)", ["slot \(name)": "opens"]) {
            do throws(TokenStorageError) {
                _ = try vault.addSlot(SimulatedVault.key(name))
            } catch  where error.code == .outcomeUnknown {
                throw OutcomeUnknown(generation: 0)
            } catch {
                throw Refused()
            }
            return nil
        }
    }

    /// Adds a slot and returns its number; -1 when that failed, which is recorded.
    func addSlot(_ name: String) -> Int {
        var identifier = -1
        history.perform("add slot \(name)", ["slot \(name)": "opens"]) {
            identifier = try vault.addSlot(SimulatedVault.key(name)).id
            return nil
        }
        return identifier
    }

    func removeSlot(_ name: String, _ identifier: Int) {
        history.perform("remove slot \(name)", ["slot \(name)": nil]) {
            try vault.removeSlot(identifier)
            return nil
        }
    }

    private func generation(_ body: () throws -> UInt64?) throws -> UInt64? {
        do {
            return try body()
        } catch let error as TokenStorageError where error.code == .outcomeUnknown {
            throw OutcomeUnknown(generation: error.generation?.rawValue)
        }
    }
}
