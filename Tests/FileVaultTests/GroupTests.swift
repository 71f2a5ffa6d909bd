import Glibc
import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// Commits that are written together.
@Suite(.timeLimit(.minutes(20))) struct GroupTests {
    /// Else the one would wait for the sync of the others, and they for its.
    @Test func whoIsBackWhileAGroupIsMadeIsInIt() throws {
        let sandbox = try Sandbox()
        let rig = try GroupRig(in: sandbox)
        try rig.lead("first")
        rig.submit("second", making: { rig.submit("back") })
        rig.submit("third")
        rig.goOn()
        let generations = try ["first", "second", "third", "back"].map { key in
            try #require(try rig.outcome(key).get()).rawValue
        }
        #expect(generations == Array(generations[0]..<generations[0] + 4))
        #expect(rig.syncs == 2)
        #expect(try rig.storage.list().items.count == 5)
    }

    @Test func aStoreIsOneSync() throws {
        let sandbox = try Sandbox()
        let rig = try GroupRig(in: sandbox)
        for number in 0..<50 {
            try rig.storage.store(token: "fake \(number)", for: TokenKey("key \(number % 10)"))
            #expect(rig.syncs == number + 1)
        }
    }

    /// The next two syncs are of the index, which serves programs that open the vault.
    @Test func aLargeBatchIsOneSyncBeforeItIsToldOf() throws {
        let sandbox = try Sandbox()
        let rig = try GroupRig(in: sandbox)
        let changes = (0..<24_000).map { TokenChange.store(Secret(utf8: "fake"), for: TokenKey("key \($0)")) }
        let syncs = Mutex(0)
        rig.submit("batch", changes, told: { syncs.withLock { $0 = rig.syncs } })
        _ = try rig.outcome("batch").get()
        #expect(syncs.withLock { $0 } == 1)
        try rig.session.queue.alone {}
        #expect(rig.syncs == 3)
    }

    /// They find the lock free while those come back.
    @Test(arguments: [true, false])
    func whileOthersWriteNobodyJoinsAGroup(_ areWriting: Bool) throws {
        let sandbox = try Sandbox()
        let rig = try GroupRig(in: sandbox)
        let other = try BlockingFileVault.open(
            at: sandbox.path.appending("group.vault"), configuration: sandbox.configuration)
        try other.unlock(with: keyFile)
        try other.storage(service: "group").store(token: "fake", for: "other")
        #expect(!rig.session.log.hasOtherWriters)
        try rig.lead("first")
        // Sets the deadline of one second by hand, so that the speed of the machine does not matter.
        rig.session.log.othersWrote.withLock { until in
            #expect(until != nil)
            until = Deadline(after: areWriting ? .seconds(3_600) : .zero)
        }
        #expect(rig.session.log.hasOtherWriters == areWriting)
        rig.submit("second", making: { rig.submit("back") })
        rig.submit("third")
        rig.resetSyncs()
        rig.goOn()
        for key in ["first", "second", "third", "back"] { _ = try rig.outcome(key).get() }
        #expect(rig.syncs == (areWriting ? 3 : 2))
    }

    /// A writer whose group is done may be back before the requests that did not fit form the next group. Its
    /// new request is not in that group, because other processes wait for the lock.
    @Test func whoIsBackAfterAGroupWaitsForTheLockAnew() throws {
        let sandbox = try Sandbox()
        let rig = try GroupRig(in: sandbox)
        let isBackMade = Mutex(false)
        let wasBackMade = Mutex<Bool?>(nil)
        try rig.lead("first")
        // These changes fill a group.
        let large = (0..<9).map {
            TokenChange.store(Secret([UInt8](repeating: 0x61, count: 1 << 20)), for: TokenKey("large-\($0)"))
        }
        rig.submit(
            "second", large,
            told: { rig.submit("back", making: { isBackMade.withLock { $0 = true } }) })
        rig.submit(
            "third",
            told: {
                let isMade = isBackMade.withLock { $0 }
                wasBackMade.withLock { $0 = isMade }
            })
        rig.goOn()
        for key in ["second", "third", "back"] { _ = try rig.outcome(key).get() }
        #expect(wasBackMade.withLock { $0 } == false)
    }

    /// A writer that is refused may be back at once.
    @Test func whoIsRefusedAgainAndAgainKeepsNobodyWaiting() throws {
        let sandbox = try Sandbox()
        let rig = try GroupRig(in: sandbox)
        let refused = Mutex(0)
        @Sendable func refuse() {
            rig.submit(
                "refused-\(refused.withLock { $0 })",
                making: { () throws(TokenStorageError) in throw .file(.conflict) },
                told: {
                    let count = refused.withLock { refused in
                        refused += 1
                        return refused
                    }
                    if count < 100 { refuse() }
                })
        }
        let before = Mutex<Int?>(nil)
        try rig.lead("first")
        rig.submit(
            "second", making: { refuse() },
            told: {
                let count = refused.withLock { $0 }
                before.withLock { $0 = count }
            })
        rig.goOn()
        _ = try rig.outcome("second").get()
        #expect(before.withLock { $0 } == 0)
        #expect(rig.code("refused-99") == .conflict)
    }

    /// What found changes that came to nothing says nothing of the vault.
    @Test func noneOfAGroupThatFailedIsToldOfItsChanges() throws {
        let sandbox = try Sandbox()
        let rig = try GroupRig(in: sandbox)
        try rig.lead("first")
        // A request before the first change has its own result.
        rig.submit("idle", [.delete("absent")])
        rig.submit("refused", [.update("absent", details: TokenDetails(label: "fake"))])
        rig.submit("deleting", [.delete("before")])
        rig.submit("deleting too", [.delete("before")])
        rig.submit("storing", [.store(Secret(utf8: "fake"), for: "new")])
        rig.submit("storing too", [.store(Secret(utf8: "fake"), for: "new", expecting: .absent)])
        rig.submit("joining", making: { rig.fail(1) })
        rig.goOn()
        #expect(try rig.outcome("idle").get() == nil)
        #expect(rig.code("refused") == .notFound)
        for key in ["deleting", "deleting too", "storing", "storing too", "joining"] {
            #expect(rig.code(key) == .ioFailure, "\(key)")
        }
        #expect(try rig.storage.list().items.map(\.key) == ["before", "first"])
        try rig.storage.store(token: "fake-2", for: "joining")
        #expect(try rig.storage.retrieve(for: "joining") == "fake-2")
    }

    /// The disk failed, and so did taking the bytes back: whatever comes next may not be found again.
    @Test func nothingIsWrittenAfterAGroupThatNobodyKnowsOf() throws {
        let sandbox = try Sandbox()
        let rig = try GroupRig(in: sandbox)
        try rig.lead("first")
        let large = (0..<9).map {
            TokenChange.store(Secret([UInt8](repeating: 0x61, count: 1 << 20)), for: TokenKey("large-\($0)"))
        }
        // The faults hit the group's own write, the zeros over it, and the new file, now and at the next
        // write.
        rig.submit("second", large, making: { rig.fail(4) })
        // The outcome of this request is unknown as well.
        rig.submit("deleting", [.delete("large-0")])
        rig.submit("third")
        rig.goOn()
        #expect(rig.code("second") == .outcomeUnknown)
        #expect(rig.code("deleting") == .readOnly)
        #expect(rig.code("third") == .readOnly)
    }

    /// The same, and the disk works again when the next comes: what is there moves to a new file, and it goes on.
    @Test func whatComesAfterAGroupThatNobodyKnowsOfGoesToANewFile() throws {
        let sandbox = try Sandbox()
        let rig = try GroupRig(in: sandbox)
        try rig.lead("first")
        let large = (0..<9).map {
            TokenChange.store(Secret([UInt8](repeating: 0x61, count: 1 << 20)), for: TokenKey("large-\($0)"))
        }
        rig.submit("second", large, making: { rig.fail(3) })
        rig.submit("deleting", [.delete("first")])
        rig.submit("third")
        rig.goOn()
        #expect(rig.code("second") == .outcomeUnknown)
        #expect(try rig.outcome("deleting").get() != nil)
        #expect(try rig.outcome("third").get() != nil)
        #expect(try rig.storage.retrieve(for: "first") == nil)
        #expect(try rig.storage.retrieve(for: "third") != nil)
    }

    /// The bytes are on the disk: what comes next may not be written over them.
    @Test func nothingIsWrittenOverAGroupThatWasMovedAway() throws {
        let sandbox = try Sandbox()
        let rig = try GroupRig(in: sandbox)
        let (path, away) = (sandbox.path.string, sandbox.path.string + "-away")
        try rig.lead("first")
        let large = (0..<9).map {
            TokenChange.store(Secret([UInt8](repeating: 0x61, count: 1 << 20)), for: TokenKey("large-\($0)"))
        }
        rig.submit("second", large, making: { rig.onNextSync { _ = rename(path, away) } })
        rig.submit("third")
        rig.goOn()
        #expect(rig.code("second") == .outcomeUnknown)
        #expect(rig.code("third") == .unavailable)
        try #require(rename(away, path) == 0)
        try rig.storage.store(token: "fake", for: "fourth")
        let vault = try BlockingFileVault.open(
            at: sandbox.path.appending("group.vault"), configuration: sandbox.configuration)
        try vault.unlock(with: keyFile)
        #expect(try vault.verify().isClean)
        #expect(try vault.storage(service: "group").list().items.count == 12)
    }

    /// A store that does not fit prevents neither a deletion nor another store that fits.
    @Test func onAFullDiskEachStandsByItself() throws {
        let disk = SimulatedDisk(try SimulatedVault.fresh())
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        let rig = try GroupRig(vault)
        disk.leaveFree(200_000)
        try rig.lead("first")
        let large = Secret([UInt8](repeating: 0x61, count: 1 << 20))
        rig.submit("deleting", [.delete("before")])
        rig.submit("large", [.store(large, for: "large")])
        rig.submit("small")
        rig.goOn()
        for key in ["deleting", "small"] { #expect(throws: Never.self) { try rig.outcome(key).get() } }
        #expect(rig.code("large") == .noSpace)
        #expect(try rig.storage.list().items.map(\.key) == ["first", "small"])
    }

    /// Changing slots and compacting a vault need a caller that is alone. That caller comes before the
    /// writers, which come again and again.
    @Test func whoWantsToBeAloneIsNext() throws {
        let sandbox = try Sandbox()
        let rig = try GroupRig(in: sandbox)
        let order = Monitor<[String]>([])
        try rig.lead("first")
        rig.submit("second", making: { order.announce { $0.append("second") } })
        let thread = WorkerThread(name: "alone")
        thread.run { try? rig.session.queue.alone { order.announce { $0.append("alone") } } }
        while rig.session.queue.waitingAlone == 0 { WorkerThread.giveWay() }
        rig.goOn()
        order.wait { $0.count == 2 ? () : nil }
        #expect(order.withLock { $0 } == ["alone", "second"])
    }
}
