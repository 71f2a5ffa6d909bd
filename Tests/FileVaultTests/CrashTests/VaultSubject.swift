import TokenVault
import TokenVaultPlatform

/// The conditions for a vault after a crash. The vault opens, and holds what was acknowledged and nothing
/// else. It verifies, and accepts writes.
struct VaultSubject: CrashSubject {
    /// The methods to try, by name: those that open are found as facts `slot NAME`.
    var methods: [String] = []
    /// The method that opens the vault in every state; `nil` when none of them need.
    var key: String? = "first"
    /// How many frames may follow the index block; `nil` for what vaults have.
    var tailBound: Int?

    func inspect(_ disk: SimulatedDisk, expecting expectations: [Expectation]) -> [String] {
        do {
            return try look(at: disk, expecting: expectations)
        } catch {
            return ["\(error)"]
        }
    }

    /// Which methods open the vault on `disk`, as facts, and one that does.
    func slots(on disk: SimulatedDisk) throws -> (facts: Facts, opener: String?) {
        let location = SimulatedVault.location(on: disk)
        var slots: Facts = [:]
        var opener = key
        for method in methods {
            do {
                try SimulatedVault.open(at: location, key: method).close()
                slots["slot \(method)"] = Fact(value: "opens", generation: 0)
                opener = opener ?? method
            } catch let error as TokenStorageError where error.code == .wrongPassphrase {}
        }
        return (slots, opener)
    }

    private func look(at disk: SimulatedDisk, expecting expectations: [Expectation]) throws -> [String] {
        let location = SimulatedVault.location(on: disk)
        guard try disk.directory(0).attributes(of: SimulatedVault.name) != nil else {
            return expectations.compactMap { $0.complaint(about: [:]) }.map { "no vault file: \($0)" }
        }
        let (slots, opener) = try slots(on: disk)
        guard let opener else { return ["no method opens the vault"] }

        let vault = try SimulatedVault.open(at: location, key: opener, tailBound: tailBound)
        let found = try SimulatedVault.facts(of: vault)
        let all = found.merging(slots) { $1 }
        var complaints = expectations.compactMap { $0.complaint(about: all) }
        let report = try vault.verify()
        if !report.isClean { complaints.append("verify: \(report.problems)") }
        let generation = try vault.storage(service: SimulatedVault.service)
            .store(token: "written after the crash", for: "after").rawValue
        let highest = expectations.map(\.highest).max() ?? 0
        if generation <= highest {
            complaints.append("generation \(generation) after \(highest) was acknowledged")
        }
        vault.close()

        let again = try SimulatedVault.open(at: location, key: opener)
        var expected = found
        expected["after"] = Fact(value: "written after the crash", generation: generation)
        if try SimulatedVault.facts(of: again) != expected {
            complaints.append("a store after the crash does not survive opening the vault anew")
        }
        if try !again.verify().isClean { complaints.append("verify after a store: not clean") }
        again.close()
        return complaints
    }
}
