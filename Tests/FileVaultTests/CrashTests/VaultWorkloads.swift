import SystemPackage
import TokenVault
import TokenVaultPlatform

extension VaultWorkload {
    /// Text of `count` bytes that differ from place to place, so that no two sectors are alike.
    static func text(_ name: String, _ count: Int) -> String {
        var text = ""
        var line = 0
        while text.utf8.count < count {
            text += "\(name)-\(line),"
            line += 1
        }
        return String(text.prefix(count))
    }

    static let all: [VaultWorkload] = [
        creation, stores, replacements, deletions, batches, growth, slots, passphrase, revocation, devices,
        compactions, keptValues,
        twoWriters,
        failedWrites, failedCompaction, failedSlots, failedDeletion, largeDeletion, withoutState,
        refusedRename,
        threads, threadsOnFailingDisk, indexed, indexedByTwo, failedIndex,
    ]

    /// Those whose crashes are followed by a look at the crashes of what mends them.
    static let recovered: [VaultWorkload] = [
        stores, batches, deletions, slots, compactions, twoWriters, failedWrites, failedCompaction, indexed,
    ]

    static let creation = VaultWorkload(
        name: "create", methods: ["first"], key: nil, start: { DiskContents(directories: [[:], [:]]) },
        samples: 60
    ) { script in
        // The slot shows that a vault exists: an empty vault has no other facts.
        script.history.perform("create", ["slot first": "opens"]) {
            _ = try BlockingFileVault.create(
                at: script.location, unlockMethod: SimulatedVault.key("first"),
                configuration: SimulatedVault.configuration())
            return nil
        }
        let writer = try script.open()
        writer.store("first", "stored at once")
        writer.store("second", "and once more")
    }

    static let stores = VaultWorkload(name: "store") { script in
        let writer = try script.open()
        for (index, count) in [0, 1, 40, 300, 500, 1_100, 6_500, 40, 700, 2_500, 40].enumerated() {
            writer.store("key \(index)", text("value \(index)", count))
        }
    }

    static let replacements = VaultWorkload(name: "replace") { script in
        let writer = try script.open()
        for index in 0..<9 { writer.store("key \(index % 2)", text("value \(index)", 100 + 490 * index)) }
        // A later process continues where the first one stopped.
        let other = try script.open()
        other.store("key 0", text("of the other", 900))
    }

    static let deletions = VaultWorkload(name: "delete", samples: 24) { script in
        let writer = try script.open()
        for index in 0..<4 { writer.store("key \(index)", text("value \(index)", 450)) }
        writer.delete("key 1")
        writer.store("key 1", text("again", 450))
        writer.delete("key 3")
        writer.delete("key 1")
        writer.store("key 5", "after the deletions")
    }

    static let batches = VaultWorkload(name: "batch commit") { script in
        let writer = try script.open()
        writer.commit([("access", text("access 1", 600)), ("refresh", text("refresh 1", 2_300))])
        writer.commit([
            ("access", text("access 2", 900)), ("refresh", text("refresh 2", 300)), ("scope", "all"),
        ])
        writer.commit((0..<6).map { ("key \($0)", text("value \($0)", 700)) })
        writer.commit([("access", text("access 3", 500)), ("refresh", text("refresh 3", 1_500))])
        writer.commit([("access", nil), ("refresh", text("refresh 4", 500))])
    }

    static let growth = VaultWorkload(name: "growth", samples: 24) { script in
        let writer = try script.open()
        writer.store("small", "before")
        writer.store("large", text("large", 70_000))
        writer.store("larger", text("larger", 90_000))
        writer.store("small", "after")
    }

    static let slots = VaultWorkload(name: "slots", methods: ["second", "third"]) { script in
        let writer = try script.open()
        writer.store("key", text("value", 300))
        let second = writer.addSlot("second")
        writer.store("key", text("value 2", 300))
        let third = writer.addSlot("third")
        writer.removeSlot("second", second)
        writer.store("key", text("value 3", 300))
        writer.compact()
        writer.removeSlot("third", third)
        writer.store("other", "last")
    }

    static let passphrase = VaultWorkload(
        name: "passphrase", methods: ["old words", "new words"], key: nil,
        start: { try SimulatedVault.fresh(key: "old words") },
        initial: ["slot old words": Fact(value: "opens", generation: 0)], limit: 60
    ) { script in
        let writer = try script.open(key: "old words")
        writer.store("key", text("value", 300))
        writer.history.perform("change passphrase", ["slot old words": nil, "slot new words": "opens"]) {
            try writer.vault.changePassphrase(
                from: Secret(utf8: "old words"), to: Secret(utf8: "new words"))
            return nil
        }
        writer.store("key", text("value 2", 300))
    }

    /// A key rotation: a new root key, and the compaction that seals everything again under it.
    static let revocation = VaultWorkload(name: "revocation", methods: ["second"], samples: 24) { script in
        let writer = try script.open()
        for index in 0..<3 { writer.store("key \(index)", text("value \(index)", 500)) }
        let second = writer.addSlot("second")
        writer.history.perform("revoke", ["slot second": nil]) {
            let report = try writer.vault.rotateKeys(
                keeping: [SimulatedVault.key("first")], removing: [second])
            guard report.resealed == 3, report.remaining == 0 else {
                throw SimulatedVault.Complaint("not all items were sealed anew")
            }
            return nil
        }
        writer.store("key 1", text("after", 300))
        let other = try script.open()
        other.store("key 2", text("of the other", 300))
        // The second rotation meets the result of the first.
        writer.history.perform("revoke again", [:]) {
            _ = try writer.vault.rotateKeys(keeping: [SimulatedVault.key("first")])
            return nil
        }
        writer.store("key 3", "last")
    }

    /// A device comes and goes, as a device that stays sees it. The removed device takes no item along.
    static let devices = VaultWorkload(name: "devices", samples: 24) { script in
        let writer = try script.open()
        writer.store("key", text("value", 300))
        let elsewhere = try BlockingFileVault.open(
            at: SimulatedVault.location(script.disk.directory(0), SimulatedDisk().directory(1)),
            configuration: SimulatedVault.configuration())
        try elsewhere.unlock(with: SimulatedVault.key("first"))
        writer.history.perform("enrol", [:]) {
            _ = try elsewhere.enrolDevice()
            return nil
        }
        writer.store("key", text("value 2", 300))
        writer.history.perform("remove device", [:]) {
            guard let device = try writer.vault.devices().first(where: { !$0.isThisDevice }) else {
                throw SimulatedVault.Complaint("no other device")
            }
            _ = try writer.vault.removeDevice(device.id)
            return nil
        }
        writer.store("other", "last")
    }

    static let compactions = VaultWorkload(name: "compaction") { script in
        let writer = try script.open()
        for index in 0..<5 { writer.store("key \(index)", text("value \(index)", 600)) }
        writer.compact()
        for index in 2..<5 { writer.store("key \(index)", text("newer \(index)", 600)) }
        writer.compact()
        writer.store("key 0", "after compaction")
        // Another process opens the compacted file.
        let other = try script.open()
        other.store("key 1", "of the other")
        other.compact()
        writer.store("key 2", "of the first again")
    }

    /// The number is in the keybag, and what it keeps is copied in front of the newest values.
    static let keptValues = VaultWorkload(name: "kept values") { script in
        let writer = try script.open()
        for index in 0..<4 { writer.store("key \(index % 2)", text("value \(index)", 600)) }
        writer.keep(1)
        writer.compact()
        writer.store("key 0", text("newer", 600))
        let other = try script.open()
        other.undo("key 0", backTo: text("value 2", 600))
        other.compact()
        other.keep(0)
        other.delete("key 0")
        writer.store("key 0", "after the deletion")
    }

    static let twoWriters = VaultWorkload(name: "two writers") { script in
        let first = try script.open()
        let second = try script.open()
        first.store("a", text("first", 400))
        second.store("b", text("second", 700))
        first.store("a", text("first 2", 900))
        second.compact()
        first.store("c", text("first 3", 300))
        second.commit([("a", text("second 2", 200)), ("d", text("second 3", 200))])
        first.delete("b")
        second.store("b", text("second 4", 500))
        first.compact()
        second.store("e", "second 5")
        first.store("a", "first 4")
    }

    static let failedWrites = VaultWorkload(name: "failing disk") { script in
        let writer = try script.open()
        writer.store("key", text("value", 300))
        script.fail(.synchronize, .ioError)
        writer.storeFailing("lost", text("lost", 700), [.ioFailure])
        writer.store("key", text("value 2", 1_200))
        script.fail(.write, .ioError, bytesWritten: 400)
        writer.storeFailing("torn", text("torn", 900), [.ioFailure])
        writer.store("other", text("value 3", 200))
        script.fail(.write, .diskQuotaExceeded, bytesWritten: 512)
        writer.storeFailing("full", text("full", 900), [.noSpace])
        writer.store("key", text("value 4", 100))
        // The second fault makes the repair fail as well.
        script.fail(.synchronize, .ioError, times: 2)
        writer.storeFailing("lost twice", text("lost twice", 700), [.ioFailure])
        let other = try script.open()
        other.store("last", "value 5")
    }

    static let failedCompaction = VaultWorkload(name: "failing compaction", samples: 24) { script in
        let writer = try script.open()
        for index in 0..<3 { writer.store("key \(index)", text("value \(index)", 600)) }
        for kind: DiskFault.Kind in [.create, .write, .synchronize, .rename] {
            script.fail(kind, .ioError, bytesWritten: 2_000)
            writer.compactFailing()
            writer.store("key 1", text("after \(kind)", 200))
        }
        script.fail(.synchronizeDirectory, .ioError)
        writer.compactFailing()
        let other = try script.open()
        other.store("key 2", "of the other")
    }

    static let failedSlots = VaultWorkload(name: "failing slots", methods: ["second"], samples: 24) {
        script in
        for skipping in 0..<3 {
            let writer = try script.open()
            writer.store("key", text("value \(skipping)", 200))
            script.fail(.synchronize, .ioError, skipping: skipping)
            writer.addSlotFailing("second")
            script.disk.heal()
        }
    }

    /// The deletion is durable before its value is erased: a failure in between must not be told as if
    /// nothing had been deleted.
    static let failedDeletion = VaultWorkload(name: "failing deletion", samples: 4, limit: 1_000) { script in
        for kind: DiskFault.Kind in [.create, .write, .synchronize, .rename, .synchronizeDirectory] {
            for skipping in 0..<3 {
                let writer = try script.open()
                writer.store("key", text("value", 300))
                writer.store("other", text("other \(kind) \(skipping)", 300))
                script.fail(kind, .ioError, skipping: skipping)
                writer.deleteOnFailingDisk("key")
                script.disk.heal()
                writer.vault.close()
            }
        }
    }

    /// A vault too large to be compacted at each deletion: the value is overwritten where it stands.
    static let largeDeletion = VaultWorkload(
        name: "deletion in a large vault",
        start: {
            let disk = SimulatedDisk(try SimulatedVault.fresh())
            let vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
            let storage = vault.storage(service: SimulatedVault.service)
            try storage.store(token: text("large", 1_048_000), for: "large")
            try storage.store(token: text("old value", 900), for: "key")
            try storage.store(token: text("value", 1_500), for: "key")
            vault.close()
            return disk.contents
        },
        initial: [
            "large": Fact(value: text("large", 1_048_000), generation: 1),
            "key": Fact(value: text("value", 1_500), generation: 3),
        ], samples: 8, limit: 150
    ) { script in
        let writer = try script.open()
        writer.delete("key")
        writer.store("key", text("stored again", 500))
        writer.commit([("key", nil), ("other", text("other", 500))])
    }

    /// A vault without a state directory: no device key, no anchor.
    static let withoutState = VaultWorkload(name: "no anchor file") { script in
        // The directory exists without the anchor, and the first commit creates the anchor again.
        for name in script.disk.contents.directories[1].keys where name.hasSuffix(".anchor") {
            try script.disk.directory(1).remove(name)
        }
        try script.disk.directory(1).synchronize()
        let writer = try script.open()
        for index in 0..<4 { writer.store("key \(index)", text("value \(index)", 800)) }
        writer.compact()
        writer.store("key 1", text("after", 2_000))
    }

    /// Four threads of two processes at once: commits are written in groups, and the processes wait for each
    /// other. Each thread has keys of its own.
    static let threads = VaultWorkload(name: "threads", samples: 16) { script in
        let writers = [try script.open(), try script.open()]
        let done = Monitor(0)
        let workers = (0..<4).map { number in
            let worker = WorkerThread(name: "writer \(number)")
            worker.run {
                let writer = writers[number % 2]
                for round in 0..<4 {
                    writer.store("\(number) a", text("of \(number), \(round)", 100 + 300 * round))
                    writer.commit([
                        ("\(number) b", text("b of \(number), \(round)", 400)),
                        ("\(number) c", round == 2 ? nil : text("c of \(number), \(round)", 150)),
                    ])
                }
                if number == 3 { writer.compact() }
                done.announce { $0 += 1 }
            }
            return worker
        }
        done.wait { $0 == workers.count ? () : nil }
    }

    /// The file cannot be replaced (it is bind-mounted): compaction leaves its mark in the old file, which
    /// goes on being used. The sizes move the mark over the boundaries of sectors.
    static let refusedRename = VaultWorkload(name: "refused rename", samples: 8, limit: 900) { script in
        let writer = try script.open()
        script.fail(.rename, .resourceBusy, times: .max)
        for round in 0..<8 {
            writer.store("key \(round)", text("value \(round)", 60 + 70 * round))
            writer.compactFailing()
            writer.store("other", text("other \(round)", 300))
            if round % 4 == 3 { writer.delete("key \(round)") }
        }
    }

    /// Groups of commits whose sync or write fails. Every call of a group gets the error, and nothing of the
    /// group stays.
    static let threadsOnFailingDisk = VaultWorkload(name: "threads on a failing disk", samples: 8, limit: 800)
    {
        script in
        let vault = try script.open()
        for skipping in [3, 6, 11] { script.fail(.synchronize, .ioError, skipping: skipping) }
        script.fail(.write, .ioError, skipping: 9, bytesWritten: 600)
        let done = Monitor(0)
        let workers = (0..<4).map { number in
            let worker = WorkerThread(name: "writer \(number)")
            worker.run {
                for round in 0..<5 {
                    vault.storeOnFailingDisk("\(number) \(round)", text("of \(number), \(round)", 500))
                }
                done.announce { $0 += 1 }
            }
            return worker
        }
        done.wait { $0 == workers.count ? () : nil }
    }
}
