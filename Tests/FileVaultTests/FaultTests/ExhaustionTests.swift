import SystemPackage
import Testing
import TokenVault

/// The system has no descriptor or memory left, and the error says so. A file that could not be examined does
/// not count as missing. Otherwise a vault that was put back would go unseen, or an item would seem another
/// device's.
@Suite struct ExhaustionTests {
    static let exhaustions: [Errno] = [.tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory]

    @Test(arguments: exhaustions)
    func anAnchorThatCannotBeOpenedIsNotAMissingOne(_ errno: Errno) throws {
        let disk = SimulatedDisk(try SimulatedVault.fresh())
        let location = SimulatedVault.location(on: disk)
        let vault = try SimulatedVault.open(at: location)
        let storage = vault.storage(service: SimulatedVault.service)
        try storage.store(token: "old", for: "key")
        let older = try #require(disk.contents.directories[0][SimulatedVault.name])
        try storage.store(token: "new", for: "key")
        vault.close()
        disk.tamper(0, SimulatedVault.name) { $0 = older }

        disk.inject(DiskFault(kind: .open, directory: 1, suffix: ".anchor", times: .max, errno: errno))
        var error = try #require(throws: TokenStorageError.self) { try SimulatedVault.open(at: location) }
        #expect(error.code == .resourcesExhausted)
        disk.heal()
        error = try #require(throws: TokenStorageError.self) { try SimulatedVault.open(at: location) }
        #expect(error.code == .rolledBack)
    }

    @Test(arguments: exhaustions, [".device", ".pepper"])
    func aKeyThatCannotBeOpenedIsNotAMissingOne(_ errno: Errno, _ suffix: String) throws {
        let disk = SimulatedDisk(try SimulatedVault.fresh(key: "old words"))
        let location = SimulatedVault.location(on: disk)
        let policies: [AccessPolicy] = [.whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly]
        let vault = try SimulatedVault.open(at: location, key: "old words")
        for policy in policies {
            try vault.storage(service: SimulatedVault.service)
                .store(token: "fake", for: TokenKey(policy.rawValue), policy: policy)
        }
        vault.close()

        disk.inject(DiskFault(kind: .open, directory: 1, suffix: suffix, times: .max, errno: errno))
        let error = try #require(throws: TokenStorageError.self) {
            try SimulatedVault.open(at: location, key: "old words")
        }
        #expect(error.code == .resourcesExhausted)
        disk.heal()
        let again = try SimulatedVault.open(at: location, key: "old words")
        for policy in policies {
            #expect(
                try again.storage(service: SimulatedVault.service).retrieve(
                    for: TokenKey(policy.rawValue)) == "fake")
        }
    }
}
