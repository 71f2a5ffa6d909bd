import Synchronization
import TestLanes
import Testing
import TokenVaultPlatform

@testable import VaultAgentServer

@Suite(.tags(.programs), .from(.usual), .timeLimit(.minutes(20))) final class TurnQueueTests: Sendable {
    private let order = Mutex<[Int32]>([])

    /// A thread that waits for a turn, notes it and gives it back.
    private func wait(_ queue: TurnQueue, _ process: Int32, _ group: Monitor<Int>) {
        let before = queue.waiters
        WorkerThread(name: "waiter").run { [self] in
            if let turn = try? queue.turn(for: process, atMost: .seconds(300), isWanted: { true }) {
                order.withLock { $0.append(process) }
                withExtendedLifetime(turn) {}
            }
            group.announce { $0 += 1 }
        }
        waitForWaiters(queue, before + 1)
    }

    private func waitForWaiters(_ queue: TurnQueue, _ count: Int) {
        let deadline = Deadline(after: .seconds(300))
        var backOff = BackOff()
        while queue.waiters != count, backOff.wait(until: deadline) {}
        #expect(queue.waiters == count)
    }

    @Test func eachProcessHasItsTurn() throws {
        let queue = TurnQueue(1, share: 1)
        let group = Monitor(0)
        var first: TurnQueue.Turn? = try queue.turn(for: 9, atMost: .zero, isWanted: { true })
        for _ in 0..<5 { wait(queue, 1, group) }
        for _ in 0..<2 { wait(queue, 2, group) }
        wait(queue, 3, group)
        withExtendedLifetime(first) {}
        first = nil
        _ = group.wait(atMost: .seconds(300)) { $0 == 8 ? () : nil }
        #expect(order.withLock { $0 } == [1, 2, 3, 1, 2, 1, 1, 1])
    }

    @Test func oneProcessHasItsShareAndNoMore() throws {
        let queue = TurnQueue(3, share: 2)
        let one = try queue.turn(for: 1, atMost: .zero, isWanted: { true })
        var two: TurnQueue.Turn? = try queue.turn(for: 1, atMost: .zero, isWanted: { true })
        #expect(throws: TurnQueue.Refusal.timedOut) {
            try queue.turn(for: 1, atMost: .zero, isWanted: { true })
        }
        let other = try queue.turn(for: 2, atMost: .zero, isWanted: { true })
        #expect(throws: TurnQueue.Refusal.timedOut) {
            try queue.turn(for: 3, atMost: .zero, isWanted: { true })
        }
        withExtendedLifetime(two) {}
        two = nil
        let three = try queue.turn(for: 1, atMost: .zero, isWanted: { true })
        withExtendedLifetime((one, other, three)) {}
    }

    @Test func oneThatIsHadForTooLongIsAnothers() throws {
        let queue = TurnQueue(1, share: 1, longest: .zero)
        let first = try queue.turn(for: 1, atMost: .seconds(300), isWanted: { true })
        var second: TurnQueue.Turn? = try queue.turn(for: 1, atMost: .seconds(300), isWanted: { true })
        withExtendedLifetime((first, second)) {}
        // Returning the turn twice still frees only one turn.
        second = nil
        _ = consume first
        let patient = TurnQueue(1, share: 1, longest: .seconds(3_600))
        let held = try patient.turn(for: 1, atMost: .seconds(300), isWanted: { true })
        #expect(throws: TurnQueue.Refusal.timedOut) {
            try patient.turn(for: 2, atMost: .zero, isWanted: { true })
        }
        withExtendedLifetime(held) {}
    }

    @Test func whoDoesNotWantItAnyMoreHasNone() throws {
        let queue = TurnQueue(1, share: 1)
        var first: TurnQueue.Turn? = try queue.turn(for: 9, atMost: .zero, isWanted: { true })
        let isWanted = Atomic(true)
        let result = Monitor<TurnQueue.Refusal?>(nil)
        WorkerThread(name: "waiter").run {
            do throws(TurnQueue.Refusal) {
                _ = try queue.turn(
                    for: 1, atMost: .seconds(300), isWanted: { isWanted.load(ordering: .relaxed) })
            } catch {
                result.announce { $0 = error }
            }
        }
        waitForWaiters(queue, 1)
        isWanted.store(false, ordering: .relaxed)
        queue.look()
        #expect(result.wait(atMost: .seconds(300)) { $0 } == .unwanted)
        #expect(queue.waiters == 0)
        withExtendedLifetime(first) {}
        first = nil
        // The turn is available again.
        _ = try queue.turn(for: 1, atMost: .zero, isWanted: { true })
    }

    @Test func whoWaitsLooksAtThoseWhoHaveTurns() throws {
        let queue = TurnQueue(1, share: 1)
        let first = Mutex<TurnQueue.Turn?>(try queue.turn(for: 9, atMost: .zero, isWanted: { true }))
        _ = try queue.turn(
            for: 1, atMost: .seconds(300), whileWaiting: { first.withLock { $0 = nil } }, isWanted: { true })
    }
}
