import SystemPackage
import TokenVault
import TokenVaultPlatform

extension RestoreCrashTests {
    /// Kills a restoring process after each operation. Another process goes on with what is there then, and
    /// the power fails. What the second process has acknowledged holds.
    static func exploreKilled(isAdopting: Bool) async throws -> CrashRig.Report {
        var all = CrashRig.Report()
        let (start, vault, copy) = try start(3)
        var isDead = true
        var life = 0
        while isDead {
            for restoresAgain in [false, true] {
                let disk = SimulatedDisk(start)
                let mortal = MortalDisk(operations: life)
                let isNext = Monitor(false)
                let history = History(
                    disk: disk, initial: vault, isKilled: { mortal.isDead && !isNext.withLock { $0 } })
                let location = SimulatedVault.location(
                    mortal.directory(disk.directory(0)), mortal.directory(disk.directory(1)))
                restore(isAdopting, from: vault, to: copy, at: location, history)
                isDead = mortal.isDead
                isNext.withLock { $0 = true }
                let position = disk.position
                let next = Script(disk: disk, history: history)
                try next.open().store("next", VaultWorkload.text("next", 500))
                if restoresAgain {
                    var lost = vault
                    lost["next"] = Fact(value: "", generation: 0)
                    restore(false, from: lost, to: copy, at: next.location, history)
                } else {
                    try next.open().compact()
                }
                try next.open().store("last", "at last")
                let rig = CrashRig(samples: 40, from: position)
                all.add(
                    await rig.explore(
                        history, from: start, subject: Subject(base: VaultSubject(), generations: copy)))
            }
            life += 1
        }
        return all
    }

    /// Lets each kind of operation fail once, at each of its turns. Nothing is restored then, unless the
    /// outcome is unknown. Once the disk works again, the restore succeeds.
    static func exploreFailing(isAdopting: Bool) async throws -> CrashRig.Report {
        var all = CrashRig.Report()
        let (start, vault, copy) = try start(3)
        let kinds: [DiskFault.Kind] = [
            .create, .write, .synchronize, .link, .rename, .synchronizeDirectory, .attributes, .read, .open,
            .lock,
        ]
        for kind in kinds {
            for skipping in 0..<6 {
                let disk = SimulatedDisk(start)
                let history = History(disk: disk, initial: vault)
                let script = Script(disk: disk, history: history)
                script.fail(kind, .ioError, skipping: skipping, bytesWritten: 700)
                restore(isAdopting, from: vault, to: copy, at: script.location, history, mayFail: true)
                disk.heal()
                try script.open().store("between", VaultWorkload.text("between", 300))
                var lost = vault
                lost["between"] = Fact(value: "", generation: 0)
                restore(false, from: lost, to: copy, at: script.location, history)
                try script.open().store("last", "at last")
                all.add(
                    await CrashRig(samples: 12, limit: 90).explore(
                        history, from: start, subject: Subject(base: VaultSubject(), generations: copy)))
            }
        }
        return all
    }

    private static func restore(
        _ isAdopting: Bool, from vault: Facts, to copy: Facts, at location: VaultLocation, _ history: History,
        mayFail: Bool = false
    ) {
        let source = isAdopting ? SimulatedVault.name : Self.copy
        history.perform(isAdopting ? "adopt" : "restore", isAdopting ? [:] : changes(from: vault, to: copy)) {
            do {
                let opened = try opened(source, at: location)
                _ = isAdopting ? try opened.adopt() : try opened.restore(to: location)
                return 0
            } catch {
                guard mayFail, let error = error as? TokenStorageError else { throw error }
                if error.code == .outcomeUnknown { throw OutcomeUnknown(generation: 0) }
                throw Refused()
            }
        }
    }
}

extension CrashRig.Report {
    fileprivate mutating func add(_ other: CrashRig.Report) {
        states += other.states
        cases += other.cases
        crashPoints += other.crashPoints
        violations += other.violations
        violationCount += other.violationCount
    }
}
