import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform

/// Removing the last passphrase destroys the items that need one. It takes steps in two directories. A crash
/// between the steps leaves the items there or destroyed. The vault always opens, and a passphrase that is
/// reported as gone never opens it.
@Suite(.tags(.crash)) struct PasscodeCrashTests {
    private static let pin = "pin"

    /// What opens with what, and what is there.
    private struct Subject: CrashSubject {
        /// The item, or `nil` also when its class is destroyed and its slot is not gone yet.
        private func pin(in vault: BlockingFileVault) throws(TokenStorageError) -> TokenItem? {
            let storage = vault.storage(service: SimulatedVault.service)
            let found = Result { () throws(TokenStorageError) in
                try storage.item(for: TokenKey(PasscodeCrashTests.pin))
            }
            if case .failure(let error) = found, [.wrongDevice, .notPermitted].contains(error.code) {
                return nil
            }
            return try found.get()
        }

        func inspect(_ disk: SimulatedDisk, expecting expectations: [Expectation]) -> [String] {
            do {
                let location = SimulatedVault.location(on: disk)
                var found: Facts = [:]
                // In every state the key file opens the vault, and reads every item except the pin.
                let vault = try SimulatedVault.open(at: location)
                let plain = vault.storage(service: SimulatedVault.service)
                if let item = try plain.item(for: "plain"), let text = item.secret.unprotectedText() {
                    found["plain"] = Fact(value: text, generation: item.metadata.generation.rawValue)
                }
                let problems = try vault.verify().problems
                vault.close()
                do {
                    let opened = try SimulatedVault.open(at: location, key: "old words")
                    found["slot old words"] = Fact(value: "opens", generation: 0)
                    if let item = try pin(in: opened), let text = item.secret.unprotectedText() {
                        found[PasscodeCrashTests.pin] = Fact(
                            value: text, generation: item.metadata.generation.rawValue)
                    }
                    opened.close()
                } catch let error as TokenStorageError where error.code == .wrongPassphrase {}
                return expectations.compactMap { $0.complaint(about: found) }
                    + (problems.isEmpty ? [] : ["verify: \(problems)"])
            } catch {
                return ["\(error)"]
            }
        }
    }

    /// Plainly, and with a new root.
    @Test(arguments: [false, true]) func removingTheLastPassphrase(isRevoked: Bool) async throws {
        let first = SimulatedDisk(try SimulatedVault.fresh())
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: first))
        let slot = try vault.addSlot(SimulatedVault.key("old words"))
        let storage = vault.storage(service: SimulatedVault.service)
        let plain = try storage.store(token: "no passphrase needed", for: "plain").rawValue
        let pin = try storage.store(
            token: "needs a passphrase", for: TokenKey(Self.pin), policy: .whenPasscodeSetThisDeviceOnly
        ).rawValue
        vault.close()

        let start = first.contents
        let disk = SimulatedDisk(start)
        let history = History(
            disk: disk,
            initial: [
                "plain": Fact(value: "no passphrase needed", generation: plain),
                Self.pin: Fact(value: "needs a passphrase", generation: pin),
                "slot old words": Fact(value: "opens", generation: 0),
            ])
        let writer = try Script(disk: disk, history: history).open()
        // One call makes two changes, and a crash may come between them.
        history.perform("destroy", [Self.pin: nil]) {
            history.perform("remove", ["slot old words": nil]) {
                if isRevoked {
                    let kept = [SimulatedVault.key("first")]
                    guard
                        try writer.vault.rotateKeys(keeping: kept, removing: [slot.id]).deferredReason == nil
                    else {
                        throw SimulatedVault.Complaint("sealing anew was put off")
                    }
                } else {
                    try writer.vault.removeSlot(slot.id)
                }
                return nil
            }
            return nil
        }
        let report = await CrashRig(samples: 6, limit: 60).explore(history, from: start, subject: Subject())
        print(
            "removing the last passphrase, revoked \(isRevoked): \(report.states) states of \(report.crashPoints) crash points"
        )
        #expect(report.violations == [])
        #expect(report.states >= CrashRig.least(20))
    }
}
