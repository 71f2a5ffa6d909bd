import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// What deriving a passphrase's key may cost, and the memory there is for it.
@Suite struct CalibrationTests {
    @Test func theCostFollowsTheMachine() {
        func cost(_ measured: Double, _ allowance: UInt64? = nil) -> KeyDerivationCost {
            .scaled(measured: .seconds(measured), to: .milliseconds(750), allowance: allowance)
        }
        #expect(cost(0.75) == .minimum && cost(60) == .minimum)
        #expect(cost(0.1875) == .moderate)
        #expect(cost(0.1) == KeyDerivationCost(passes: 3, memory: 480 << 20))
        // A faster machine gets at most 3 GiB of work, because eight slots must fit.
        #expect(cost(0.001) == KeyDerivationCost(passes: 3, memory: 1 << 30))
        #expect(cost(0) == cost(0.001))
        // Uses half of the allowed memory and more passes instead, but never less than the minimum.
        #expect(cost(0.1, 512 << 20) == KeyDerivationCost(passes: 5, memory: 256 << 20))
        #expect(cost(0.001, 128 << 20) == KeyDerivationCost(passes: 12, memory: 64 << 20))
        #expect(cost(0.75, 0) == .minimum)
    }

    @Test func itIsMeasured() throws {
        let cost = try KeyDerivationCost.calibrated(for: .milliseconds(1))
        #expect(cost == .minimum)
    }

    /// A control group's files, as the kernel shows them, below a directory of the test's.
    private func files(_ texts: [String: String], in sandbox: Sandbox) throws {
        for (name, text) in texts {
            let path = sandbox.path.appending("root").appending(name)
            try PosixDirectory.makeAll(path.removingLastComponent())
            let file = try PosixDirectory(path.removingLastComponent())
                .open(path.lastComponent?.string ?? "", .create)
            try file.write(Array(text.utf8), at: 0)
        }
    }

    private func remaining(_ sandbox: Sandbox) -> UInt64? {
        MemoryAllowance.$root.withValue(sandbox.path.appending("root")) { MemoryAllowance.remaining() }
    }

    @Test func theStrictestControlGroupCounts() throws {
        let sandbox = try Sandbox()
        try PosixDirectory.makeAll(sandbox.path.appending("root"))
        #expect(remaining(sandbox) == nil)
        try files(
            [
                "proc/self/cgroup": "0::/user.slice/app.scope\n",
                "sys/fs/cgroup/user.slice/app.scope/memory.max": "max\n",
                "sys/fs/cgroup/user.slice/memory.max": "100000000\n",
                "sys/fs/cgroup/user.slice/memory.stat": "anon 30000000\nfile 60000000\n",
                "sys/fs/cgroup/memory.max": "200000000\n",
            ], in: sandbox)
        #expect(remaining(sandbox) == 70_000_000)
    }

    @Test func theFirstVersionIsKnownToo() throws {
        let sandbox = try Sandbox()
        try files(
            [
                "proc/self/cgroup": "5:cpu:/x\n4:memory,hugetlb:/docker/1\n0::/\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "5000000\n",
                "sys/fs/cgroup/memory/memory.stat": "total_rss 6000000\n",
            ], in: sandbox)
        #expect(remaining(sandbox) == 0)
    }

    @Test func noKeyIsDerivedWithoutTheMemoryForIt() throws {
        let sandbox = try Sandbox()
        let method = UnlockMethod.passphrase(Secret(utf8: "not a real passphrase"))
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: method, configuration: sandbox.configuration)
        _ = try vault.addSlot(keyFile)
        try files(
            ["proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "\(40 << 20)\n"], in: sandbox)
        try MemoryAllowance.$root.withValue(sandbox.path.appending("root")) {
            let again = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
            let error = #expect(throws: TokenStorageError.self) { try again.unlock(with: method) }
            #expect(error?.code == .resourcesExhausted)
            #expect(
                error?.underlying
                    == "the passphrase needs 64 MiB of memory, and the control group has 40 MiB left")
            #expect(error?.advice?.contains("memory.max") == true)
            let measuring = #expect(throws: TokenStorageError.self) { try KeyDerivationCost.calibrated() }
            #expect(measuring?.code == .resourcesExhausted)
            try again.unlock(with: keyFile)
        }
    }

    /// A new vault is unlocked with the keys that it was made with: the second derivation would find no memory here.
    @Test func aNewVaultsPassphraseIsDerivedOnce() throws {
        let sandbox = try Sandbox()
        try files(
            ["proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "\(1 << 30)\n"], in: sandbox)
        let limit = try PosixDirectory(sandbox.path.appending("root/sys/fs/cgroup"))
            .open("memory.max", .readWrite)
        let directory = HookedDirectory(try PosixDirectory(sandbox.path)) { () throws(SystemFailure) in
            try limit.write(Array("1000\n\n\n\n\n\n".utf8), at: 0)
        }
        let method = UnlockMethod.passphrase(Secret(utf8: "not a real passphrase"))
        let path = sandbox.path.appending("test.vault")
        let vault = try MemoryAllowance.$root.withValue(sandbox.path.appending("root")) {
            let vault = try BlockingFileVault.create(
                at: VaultLocation(directory: directory, name: "test.vault", state: nil, path: path),
                unlockMethod: method, configuration: sandbox.configuration)
            #expect(MemoryAllowance.remaining() == 1_000)
            return vault
        }
        #expect(try vault.lockState() == .unlocked)
        try vault.storage(service: "s").store(token: "fake", for: "key")
        let again = try BlockingFileVault.open(
            at: path, configuration: FileVaultConfiguration(stateDirectory: nil))
        try again.unlock(with: method)
        #expect(try again.storage(service: "s").retrieve(for: "key") == "fake")
        #expect(try vault.status().unlockedBy?.kind == .passphrase)
    }

    @Test func whatLastsIsToldByTheFileSystem() throws {
        #expect(LastingStorage.isLasting("/proc/no such directory"))
        if try SmallFile.exists("/dev/shm"), (try? PosixDirectory("/dev/shm"))?.fileSystemType == 0x0102_1994
        {
            #expect(!LastingStorage.isLasting("/dev/shm/not there/nor this"))
        }
    }
}
