import Glibc
import Synchronization
import Testing
import TokenVaultPlatform

@Suite struct MonitorTests {
    @Test func whoWaitsSeesWhatIsAnnounced() async {
        let monitor = Monitor(0)
        let thread = WorkerThread(name: "waiting")
        let seen = await withCheckedContinuation { continuation in
            thread.run { continuation.resume(returning: monitor.wait { $0 >= 3 ? $0 : nil }) }
            for _ in 0..<3 { monitor.announce { $0 += 1 } }
        }
        #expect(seen == 3)
    }

    @Test func everyoneWhoWaitsIsWoken() async {
        let monitor = Monitor(false)
        let threads = (0..<8).map { WorkerThread(name: "waiting \($0)") }
        await withTaskGroup(of: Bool.self) { group in
            for thread in threads {
                group.addTask {
                    await withCheckedContinuation { continuation in
                        thread.run { continuation.resume(returning: monitor.wait { $0 ? true : nil }) }
                    }
                }
            }
            group.addTask {
                monitor.announce { $0 = true }
                return true
            }
            for await woken in group { #expect(woken) }
        }
    }

    @Test func theStateIsChangedByOneAtATime() async {
        let monitor = Monitor(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { for _ in 0..<5_000 { monitor.withLock { $0 += 1 } } }
            }
        }
        #expect(monitor.withLock { $0 } == 40_000)
    }
}

@Suite struct WorkerThreadTests {
    @Test func jobsRunInTheirOrderOnOneThreadOfTheirOwn() async {
        let thread = WorkerThread(name: "ordered")
        let seen = Mutex<[Int]>([])
        let threads = Mutex<Set<UInt>>([])
        await withCheckedContinuation { continuation in
            for index in 0..<1_000 {
                thread.run {
                    seen.withLock { $0.append(index) }
                    threads.withLock { _ = $0.insert(pthread_self()) }
                }
            }
            thread.run { continuation.resume() }
        }
        #expect(seen.withLock { $0 } == Array(0..<1_000))
        #expect(threads.withLock { $0.count } == 1)
        #expect(threads.withLock { !$0.contains(pthread_self()) })
    }

    /// Whatever the threads that other tasks share are blocked by.
    @Test func aTaskThatPrefersItRunsOnItAlone() async {
        let thread = WorkerThread(name: "tasks")
        let own = await withCheckedContinuation { continuation in
            thread.run { continuation.resume(returning: pthread_self()) }
        }
        let (changes, continuation) = AsyncStream.makeStream(of: Int.self)
        let task = Task.detached(executorPreference: thread) {
            var threads: Set<UInt> = [pthread_self()]
            for await _ in changes { threads.insert(pthread_self()) }
            return threads
        }
        for number in 0..<100 {
            continuation.yield(number)
            await Task.yield()
        }
        continuation.finish()
        #expect(await task.value == [own])
    }

    @Test func aJobMayGiveAnother() async {
        let thread = WorkerThread(name: "nested")
        let order = Mutex<[String]>([])
        await withCheckedContinuation { continuation in
            thread.run {
                thread.run {
                    order.withLock { $0.append("inner") }
                    continuation.resume()
                }
                order.withLock { $0.append("outer") }
            }
        }
        #expect(order.withLock { $0 } == ["outer", "inner"])
    }

    @Test func jobsGivenBeforeTheLastReferenceWentAreRun() async {
        let seen = Mutex(0)
        await withCheckedContinuation { continuation in
            let thread = WorkerThread(name: "short")
            for _ in 0..<100 { thread.run { seen.withLock { $0 += 1 } } }
            thread.run { continuation.resume() }
        }
        #expect(seen.withLock { $0 } == 100)
    }

    @Test(.timeLimit(.minutes(20)))
    func theThreadEndsWithItsLastReference() async {
        final class Ended: Sendable {
            let continuation: CheckedContinuation<Void, Never>
            init(_ continuation: CheckedContinuation<Void, Never>) { self.continuation = continuation }
        }
        var key = pthread_key_t()
        // The system calls this closure on the thread that ends.
        pthread_key_create(&key) { value in
            guard let value else { return }
            Unmanaged<Ended>.fromOpaque(value).takeRetainedValue().continuation.resume()
        }
        let made = key
        await withCheckedContinuation { continuation in
            let thread = WorkerThread(name: "ending")
            thread.run {
                pthread_setspecific(made, Unmanaged.passRetained(Ended(continuation)).toOpaque())
            }
        }
        pthread_key_delete(made)
    }

    @Test func theNameIsTheThreads() async {
        let thread = WorkerThread(name: "vault-writer")
        let name: String = await withCheckedContinuation { continuation in
            thread.run {
                var name = [UInt8](repeating: 0, count: 16)
                let file = open("/proc/thread-self/comm", O_RDONLY | O_CLOEXEC)
                let count = read(file, &name, name.count)
                close(file)
                let bytes = name.prefix(max(count, 0)).prefix { $0 != 0x0a }
                continuation.resume(returning: String(decoding: bytes, as: UTF8.self))
            }
        }
        #expect(name == "vault-writer")
    }
}
