import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

/// The memory that a process derives the keys of others' passphrases in.
@Suite(.timeLimit(.minutes(20))) struct DerivationBudgetTests {
    private let method = UnlockMethod.passphrase(Secret(utf8: "not a real passphrase"))

    private func budget(
        _ length: UInt64, patience: Duration = .zero, available: UInt64? = nil
    ) -> DerivationBudget {
        DerivationBudget(length, patience: patience, available: { available })
    }

    @Test func whatFitsIsTakenAndGivenBack() throws {
        let budget = budget(300)
        var first: DerivationBudget.Share? = try budget.take(200, until: nil)
        let second = try budget.take(100, until: nil)
        #expect(budget.taken == 300)
        #expect {
            _ = try budget.take(1, until: nil)
        } throws: {
            guard case .inUse? = $0 as? DerivationBudget.Refusal else { return false }
            return true
        }
        withExtendedLifetime(first) {}
        first = nil
        #expect(budget.taken == 100 && budget.waiters == 0)
        withExtendedLifetime(second) {}
    }

    /// What can never be had is not waited for.
    @Test(
        arguments: [(1_000, nil, 1_000), (1_000, 800, 700), (100, 800, 100)] as [(UInt64, UInt64?, UInt64)])
    func noMoreIsTakenThanThereIs(_ length: UInt64, _ available: UInt64?, _ allowed: UInt64) throws {
        let budget = budget(length, patience: .seconds(300), available: available)
        _ = try budget.take(allowed, until: nil)
        #expect {
            _ = try budget.take(allowed + 1, until: nil)
        } throws: {
            guard case .tooMuch(let least)? = $0 as? DerivationBudget.Refusal else { return false }
            return least == allowed
        }
    }

    /// Also while others have some of it.
    @Test func whatCanNeverBeHadIsNotWaitedForBehindOthers() throws {
        let budget = budget(1_000, patience: .seconds(300), available: 800)
        let first = try budget.take(80, until: nil)
        #expect {
            _ = try budget.take(771, until: nil)
        } throws: {
            guard case .tooMuch(let most)? = $0 as? DerivationBudget.Refusal else { return false }
            return most == 770
        }
        withExtendedLifetime(first) {}
    }

    @Test func whoWaitsHasItWhenOthersAreDone() throws {
        let budget = budget(100, patience: .seconds(300))
        var first: DerivationBudget.Share? = try budget.take(100, until: nil)
        let isDone = Monitor(false)
        WorkerThread(name: "waiter").run {
            let share = try? budget.take(60, until: nil)
            isDone.announce { $0 = share != nil }
        }
        while budget.waiters == 0 { WorkerThread.giveWay() }
        withExtendedLifetime(first) {}
        first = nil
        isDone.wait { $0 ? () : nil }
        #expect(budget.mostTaken == 100)
    }

    @Test func waitingEndsWithTheTimeOfTheCall() throws {
        let budget = budget(100, patience: .seconds(300))
        let first = try budget.take(100, until: nil)
        #expect(throws: DerivationBudget.Refusal.self) {
            _ = try budget.take(1, until: Deadline(after: Duration.zero))
        }
        withExtendedLifetime(first) {}
    }

    @Test func aVaultThatAsksForTooMuchIsRefusedWithWhatToDo() throws {
        let sandbox = try Sandbox()
        _ = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: method, configuration: sandbox.configuration
        ).addSlot(keyFile)
        var configuration = sandbox.configuration
        configuration.derivationBudget = budget(40 << 20)
        let vault = try BlockingFileVault.open(at: sandbox.vault, configuration: configuration)
        let error = #expect(throws: TokenStorageError.self) { try vault.unlock(with: method) }
        #expect(error?.code == .resourcesExhausted && error?.advice?.contains("--no-agent") == true)
        #expect(error?.underlying == "the passphrase needs 64 MiB of memory, and 40 MiB are available")
        #expect(try vault.lockState() == .locked)
        try vault.unlock(with: keyFile)
        #expect(configuration.derivationBudget?.mostTaken == 0)
    }

    /// Every way to a derivation needs the budget of the vault's configuration, and gives it back.
    @Test func eachDerivationTakesIt() throws {
        let sandbox = try Sandbox()
        let words = Secret(utf8: "not a real passphrase")
        var configuration = sandbox.configuration
        /// Runs `body` on the unlocked vault: first while another has all of the budget, then with it.
        func derive(_ body: (BlockingFileVault) throws -> Void) throws {
            let budget = budget(64 << 20)
            configuration.derivationBudget = budget
            let vault = try BlockingFileVault.open(at: sandbox.vault, configuration: configuration)
            defer { vault.close() }
            try vault.unlock(with: method)
            var share: DerivationBudget.Share? = try budget.take(64 << 20, until: nil)
            let error = #expect(throws: TokenStorageError.self) { try body(vault) }
            #expect(error?.code == .resourcesExhausted, "\(error as Any)")
            withExtendedLifetime(share) {}
            share = nil
            try body(vault)
            #expect(budget.mostTaken == 64 << 20 && budget.taken == 0)
        }
        let made = budget(64 << 20)
        configuration.derivationBudget = made
        try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: method, configuration: configuration
        ).close()
        #expect(made.mostTaken == 64 << 20 && made.taken == 0)
        try derive { try $0.unlock(with: method) }
        try derive { _ = try $0.addSlot(.passphrase(Secret(utf8: "another"))) }
        try derive { try $0.changePassphrase(from: words, to: words) }
        try derive { _ = try $0.rotateKeys(keeping: [method], droppingOthers: true) }
        let export = sandbox.path.appending("export")
        try derive { _ = try $0.export(to: export, passphrase: words) }
        try derive { _ = try $0.importItems(from: export, passphrase: words) }
        try derive { _ in
            let copy = try VaultCopy.open(at: sandbox.vault, configuration: configuration)
            try copy.unlock(with: method)
        }
    }

    @Test func theMemoryOfTheSystemIsRead() throws {
        let sandbox = try Sandbox()
        let root = sandbox.path.appending("root")
        func available() -> UInt64? { MemoryAllowance.$root.withValue(root) { MemoryAllowance.available() } }
        func write(_ text: String, _ name: String) throws {
            let path = root.appending(name)
            try PosixDirectory.makeAll(path.removingLastComponent())
            try SmallFile.create(path, Array(text.utf8))
        }
        #expect(available() == nil)
        try write("MemTotal:  9 kB\nMemFree:   1 kB\nMemAvailable:     200 kB\n", "proc/meminfo")
        #expect(available() == 200 << 10)
        try write("0::/\n", "proc/self/cgroup")
        try write("100000\n", "sys/fs/cgroup/memory.max")
        #expect(available() == 100_000)
    }
}
