import SystemPackage
import TokenVault
import TokenVaultPlatform

/// Vaults that write a new index block after every few commits.
extension VaultWorkload {
    static let indexed = VaultWorkload(name: "index", samples: 16, limit: 2_500, tailBound: 3) { script in
        let writer = try script.open()
        for index in 0..<5 { writer.store("key \(index)", text("value \(index)", 300)) }
        writer.store("key 1", text("newer", 900))
        writer.commit([("key 2", nil), ("key 0", text("with it", 200))])
        // The second writer opens by the index and compacts without reading the frames in front of it.
        let other = try script.open()
        other.store("key 6", text("of the other", 400))
        other.compact()
        for index in 3..<6 { other.store("key \(index)", text("again \(index)", 250)) }
        other.delete("key 4")
        writer.store("key 7", "last")
    }

    static let indexedByTwo = VaultWorkload(
        name: "index, two writers", samples: 8, limit: 1_500, tailBound: 2
    ) { script in
        let first = try script.open()
        let second = try script.open()
        for index in 0..<4 {
            first.store("first \(index % 2)", text("first \(index)", 350))
            second.store("second \(index % 2)", text("second \(index)", 650))
        }
        second.commit([("first 1", text("of the second", 200)), ("second 0", nil)])
        first.store("first 0", "at last")
    }

    /// The commit is acknowledged before the index is written. A failure of the index must not be reported
    /// for the commit, and must leave all as it was.
    static let failedIndex = VaultWorkload(name: "failing index", samples: 4, limit: 1_500, tailBound: 3) {
        script in
        for kind: DiskFault.Kind in [.write, .synchronize] {
            for skipping in 0..<8 {
                let writer = try script.open()
                writer.store("key", text("value \(kind) \(skipping)", 300))
                script.fail(kind, .ioError, skipping: skipping, bytesWritten: 700)
                writer.storeOnFailingDisk("other", text("other \(kind) \(skipping)", 200))
                writer.storeOnFailingDisk("third", text("third \(kind) \(skipping)", 100))
                script.disk.heal()
                writer.vault.close()
            }
        }
    }
}
