import Synchronization
import Testing
import TokenVault
import TokenVaultCrypto
import TokenVaultPlatform

@testable import TokenVaultCore
@testable import TokenVaultFile

/// A clock that stands still until it is set, and rings, or sleeps through it.
private final class ManualClock: AlarmClock {
    private struct State {
        var now: UInt64 = 1_000
        var isAwake = false
    }

    private let state = Monitor(State())
    private let rings: Bool
    /// Runs once, when the clock is woken up.
    let whenWoken = Mutex<(@Sendable () -> Void)?>(nil)

    init(rings: Bool) { self.rings = rings }

    var now: UInt64 { state.withLock { $0.now } }

    func advance(by duration: Duration) {
        state.announce { $0.now += UInt64(duration.components.seconds) * 1_000_000_000 }
    }

    func wait(until time: UInt64) {
        let rings = rings
        state.wait { state -> Void? in
            defer { state.isAwake = false }
            return state.isAwake || (rings && state.now >= time) ? () : nil
        }
    }

    func wake() {
        let hook = whenWoken.withLock { hook in
            defer { hook = nil }
            return hook
        }
        hook?()
        state.announce { $0.isAwake = true }
    }
}

/// A vault that locks itself after a time, by a clock that tests set.
@Suite(.timeLimit(.minutes(20))) struct AutomaticLockTests {
    private let sandbox: Sandbox
    private let clock: ManualClock
    private let timer: LockTimer

    private init(rings: Bool) throws {
        sandbox = try Sandbox()
        clock = ManualClock(rings: rings)
        timer = LockTimer(clock: clock)
    }

    init() throws { try self.init(rings: true) }

    private func vault(_ rule: AutomaticLock?) throws -> BlockingFileVault {
        var configuration = sandbox.configuration
        configuration.automaticLock = rule
        configuration.lockTimer = timer
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: configuration)
        try vault.storage(service: "s").store(token: "fake", for: "dark", policy: .whenUnlocked)
        try vault.storage(service: "s").store(token: "fake", for: "light", policy: .afterFirstUnlock)
        return vault
    }

    private func expectLocked(_ vault: BlockingFileVault) throws {
        let storage = vault.storage(service: "s")
        #expect(code { _ = try storage.retrieve(for: "dark") } == .locked)
        #expect(try storage.retrieve(for: "light") == "fake")
        #expect(try vault.lockState() == .afterFirstUnlock)
    }

    private func code(_ body: () throws -> Void) -> TokenStorageError.Code? {
        do { try body() } catch { return (error as? TokenStorageError)?.code }
        return nil
    }

    private func held(by vault: BlockingFileVault) throws -> Set<AccessPolicy> {
        Set(try #require(vault.state.withLock { $0.session }).ring.held.map(\.policy))
    }

    @Test func keysAreWipedWhenTheTimeHasComeThoughNobodyUsesTheVault() throws {
        let vault = try vault(.after(.seconds(60)))
        #expect(try held(by: vault).contains(.whenUnlocked))
        let ring = try #require(vault.state.withLock { $0.session }).ring
        let keys = ring.held.filter { !$0.policy.isReadableAfterFirstUnlock }
        clock.advance(by: .seconds(60))
        timer.waitUntilIdle()
        #expect(try held(by: vault) == [.afterFirstUnlock, .afterFirstUnlockThisDeviceOnly])
        #expect(!keys.isEmpty && keys.allSatisfy { $0.secret.isWiped && $0.metadata.isWiped })
        #expect(ring.roots == nil)
        try expectLocked(vault)
    }

    /// As after a suspend that the timer has not woken up from.
    @Test func aUseAfterTheTimeFindsTheVaultLockedThoughTheTimerHasNotRun() throws {
        let asleep = try AutomaticLockTests(rings: false)
        let vault = try asleep.vault(.whenIdle(for: .seconds(60)))
        asleep.clock.advance(by: .seconds(59))
        #expect(try vault.storage(service: "s").retrieve(for: "dark") == "fake")
        asleep.clock.advance(by: .seconds(60))
        try asleep.expectLocked(vault)
        #expect(try !asleep.held(by: vault).contains(.whenUnlocked))
        vault.close()
        asleep.clock.wake()
        asleep.timer.waitUntilIdle()
    }

    @Test func onlyUseKeepsAnIdleVaultUnlocked() throws {
        let vault = try vault(.whenIdle(for: .seconds(60)))
        for _ in 0..<3 {
            clock.advance(by: .seconds(59))
            #expect(try vault.storage(service: "s").retrieve(for: "dark") == "fake")
        }
        clock.advance(by: .seconds(30))
        #expect(try vault.lockState() == .unlocked)
        _ = try vault.status()
        clock.advance(by: .seconds(30))
        timer.waitUntilIdle()
        try expectLocked(vault)
    }

    @Test func useDoesNotPutOffAFixedTime() throws {
        let vault = try vault(.after(.seconds(60)))
        clock.advance(by: .seconds(59))
        #expect(try vault.storage(service: "s").retrieve(for: "dark") == "fake")
        clock.advance(by: .seconds(1))
        try expectLocked(vault)
        try vault.unlock(with: keyFile)
        clock.advance(by: .seconds(59))
        #expect(try vault.storage(service: "s").retrieve(for: "dark") == "fake")
    }

    @Test func theRuleCanBeChanged() throws {
        let vault = try vault(nil)
        clock.advance(by: .seconds(1_000_000))
        #expect(try vault.storage(service: "s").retrieve(for: "dark") == "fake")
        #expect(vault.automaticLock == nil)
        try vault.lockAutomatically(.after(.seconds(60)))
        #expect(vault.automaticLock == .after(.seconds(60)))
        clock.advance(by: .seconds(59))
        try vault.lockAutomatically(.after(.seconds(60)))
        clock.advance(by: .seconds(59))
        #expect(try vault.lockState() == .unlocked)
        try vault.lockAutomatically(nil)
        clock.advance(by: .seconds(59))
        #expect(try vault.lockState() == .unlocked)
        #expect(code { try vault.lockAutomatically(.whenIdle(for: .zero)) } == .invalidArgument)
        try vault.lockAutomatically(.whenIdle(for: .seconds(1)))
        clock.advance(by: .seconds(1))
        timer.waitUntilIdle()
        try expectLocked(vault)
    }

    @Test func aWrongUnlockPutsNothingOff() throws {
        let vault = try vault(.after(.seconds(60)))
        clock.advance(by: .seconds(59))
        let wrong = UnlockMethod.keyFile(Secret(utf8: "not the key either: 0123456789abcdef0123456789"))
        #expect(code { try vault.unlock(with: wrong) } == .wrongPassphrase)
        clock.advance(by: .seconds(1))
        timer.waitUntilIdle()
        try expectLocked(vault)
    }

    /// A lock that comes between the beginning of the count and the keys ends a count that goes on for the keys.
    @Test(arguments: [false, true]) func aLockBesideAnUnlockLeavesNoVaultUnlockedForEver(isFirst: Bool) throws
    {
        var vault = try vault(.after(.seconds(60)))
        if isFirst {
            vault.close()
            var configuration = sandbox.configuration
            configuration.automaticLock = .after(.seconds(60))
            configuration.lockTimer = timer
            vault = try BlockingFileVault.open(at: sandbox.vault, configuration: configuration)
        } else {
            vault.lock()
        }
        let locked = vault
        clock.whenWoken.withLock { $0 = { locked.lock() } }
        try vault.unlock(with: keyFile)
        #expect(clock.whenWoken.withLock { $0 == nil })
        #expect(try vault.lockState() == .unlocked)
        clock.advance(by: .seconds(60))
        timer.waitUntilIdle()
        try expectLocked(vault)
    }

    @Test func lockingAndClosingLeaveTheThreadNothingToDo() throws {
        let first = try vault(.after(.seconds(60)))
        first.lock()
        clock.wake()
        timer.waitUntilIdle()
        try first.unlock(with: keyFile)
        first.close()
        clock.wake()
        timer.waitUntilIdle()
    }

    /// The real clock and timer: the thread is awake when the time has come and not much earlier.
    @Test func theAlarmRings() throws {
        let alarm = try SleepingAlarm()
        let begin = alarm.now
        alarm.wait(until: begin + 20_000_000)
        #expect(alarm.now >= begin + 20_000_000)
        alarm.wait(until: begin)
        alarm.wake()
        alarm.wait(until: .max)
    }
}
