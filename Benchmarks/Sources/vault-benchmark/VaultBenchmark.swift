import BareCryptography
import Glibc
import Measuring
import SystemPackage
import TokenVault

/// Measures the file vault against the limits of the machine, in turn, so that a noisy neighbour meets both:
/// `vault-benchmark DIRECTORY`.
@main
struct VaultBenchmark {
    static func main() async throws {
        if CommandLine.arguments.count == 3, CommandLine.arguments[1] == storingWithoutEnd {
            return try await VaultBenchmark(directory: FilePath(CommandLine.arguments[2])).storeWithoutEnd()
        }
        let parent = CommandLine.arguments.count > 1 ? CommandLine.arguments[1] : "."
        try await withTemporaryDirectory(in: parent) { path in
            try await VaultBenchmark(directory: FilePath(path)).run()
        }
    }

    private static let storingWithoutEnd = "--store-without-end"
    private static let writers = 16
    /// Enough to be far from what caches hold.
    private static let items = 100_000
    private static let size = 1_024
    /// How long the frame of such an item is.
    private static let frame = 1_448

    let directory: FilePath
    private let method = UnlockMethod.keyFile(Secret(utf8: "a benchmark's key, which is no secret at all"))
    private let secret = Secret([UInt8](repeating: 0x61, count: size))

    private func run() async throws {
        let small = try filledVault("small.vault", items: 100)
        let large = try filledVault("large.vault", items: Self.items)
        try reportStores(small, large)
        try await reportRetrievals(large)
        try await reportWriters(small)
        try reportOthers(small)
        small.close()
        large.close()
    }

    private var configuration: FileVaultConfiguration {
        FileVaultConfiguration(stateDirectory: directory.appending("state"))
    }

    /// A vault with `items` items, stored in batches.
    private func filledVault(_ name: String, items: Int) throws -> BlockingFileVault {
        let vault = try BlockingFileVault.create(
            at: directory.appending(name), unlockMethod: method, configuration: configuration)
        let storage = vault.storage(service: "benchmark")
        for start in stride(from: 0, to: items, by: 1_000) {
            _ = try storage.commit(
                (start..<min(items, start + 1_000)).map { .store(secret, for: TokenKey("item-\($0)")) })
        }
        return vault
    }

    private func reportStores(_ small: BlockingFileVault, _ large: BlockingFileVault) throws {
        Report.say("store 1 KiB, durable, and pwrite + fdatasync of as many bytes, in turn")
        let rounds = 2_000
        let (smallStorage, largeStorage) = (
            small.storage(service: "benchmark"), large.storage(service: "benchmark")
        )
        let bare = try BareFile(
            at: directory.appending("bare").string, bytesPerWrite: Self.frame, writes: rounds)
        guard let calls = bare_store_create(directory.string, rounds, Self.frame) else { throw Errno.ioError }
        defer { bare_store_destroy(calls) }
        var (bareTimes, callTimes, smallTimes, largeTimes) = (
            Measurement(), Measurement(), Measurement(), Measurement()
        )
        for round in 0..<rounds {
            for index in InterleavedMeasurement.order(of: 4, in: round) {
                switch index {
                case 0: try bareTimes.time { try bare.write() }
                case 1:
                    var isDone = false
                    callTimes.time { isDone = bare_store_write(calls) == 0 }
                    guard isDone else { throw Errno.ioError }
                case 2:
                    try smallTimes.time {
                        try smallStorage.store(secret, for: TokenKey("item-\(round % 100)"))
                    }
                default:
                    try largeTimes.time {
                        try largeStorage.store(secret, for: TokenKey("item-\(round * 37 % Self.items)"))
                    }
                }
            }
        }
        Report.judge(
            "file: the system calls of a store, from C / pwrite + fdatasync",
            Spread(callTimes, per: bareTimes), nil, of: [("system calls", callTimes)])
        for (times, name) in [(smallTimes, "100"), (largeTimes, "100,000")] {
            Report.judge(
                "file: store 1 KiB among \(name), durable / pwrite + fdatasync",
                Spread(times, per: bareTimes), .atMost(1.3),
                of: [("store", times), ("pwrite + fdatasync", bareTimes)])
        }
    }

    private func reportRetrievals(_ vault: BlockingFileVault) async throws {
        Report.say("retrieve 1 KiB in process, unlocked, and pread + AEAD of as many bytes, in turn")
        let storage = vault.storage(service: "benchmark")
        let existential: any TokenStorage = FileTokenStorage(vault, service: "benchmark")
        guard let bare = bare_records_create(directory.appending("records").string, Self.items, Self.size)
        else { throw Errno.ioError }
        defer { bare_records_destroy(bare) }
        var (bareTimes, blocking, asynchronous) = (Measurement(), Measurement(), Measurement())
        for round in 0..<40_000 {
            for index in InterleavedMeasurement.order(of: 3, in: round) {
                // Each variant reads another item: the item that was just read is in the caches.
                let number = (round * 3 + index) * 7_919 % Self.items
                let key = TokenKey("item-\(number)")
                var found: Secret?
                switch index {
                case 0:
                    var isOpen = false
                    bareTimes.time { isOpen = bare_records_open(bare, number) == 0 }
                    guard isOpen else { throw Errno.ioError }
                    continue
                case 1: try blocking.time { found = try storage.secret(for: key) }
                default: try await asynchronous.time { found = try await existential.secret(for: key) }
                }
                guard found?.count == Self.size else { throw Errno.badMessage }
            }
        }
        Report.judge(
            "file: retrieve 1 KiB / pread + AEAD", Spread(blocking, per: bareTimes), .atMost(3),
            of: [("retrieve", blocking), ("pread + AEAD", bareTimes)])
        Report.judge(
            "file: retrieve 1 KiB through any TokenStorage / pread + AEAD",
            Spread(asynchronous, per: bareTimes), nil, of: [("any TokenStorage", asynchronous)])
    }

    private func reportWriters(_ vault: BlockingFileVault) async throws {
        Report.say("\(Self.writers) tasks that store at once, and one, in turn")
        let storage = FileTokenStorage(vault, service: "concurrent")
        /// Microseconds for each store.
        func time(writers: Int, storesEach: Int) async throws -> Double {
            let start = ContinuousClock.now
            try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in 0..<writers {
                    group.addTask { [secret] in
                        for _ in 0..<storesEach {
                            try await storage.store(secret, for: TokenKey("writer-\(writer)"))
                        }
                    }
                }
                try await group.waitForAll()
            }
            return start.microseconds / Double(writers * storesEach)
        }
        var (one, sixteen) = (Measurement(), Measurement())
        for round in 0..<41 {
            for index in InterleavedMeasurement.order(of: 2, in: round) {
                let microseconds =
                    index == 0
                    ? try await time(writers: 1, storesEach: 100)
                    : try await time(writers: Self.writers, storesEach: 50)
                // The first turn makes the items.
                guard round > 0 else { continue }
                if index == 0 { one.add(microseconds) } else { sixteen.add(microseconds) }
            }
        }
        Report.judge(
            "file: throughput of 16 writers / of one", Spread(one, per: sixteen), .atLeast(6),
            of: [("one, for each store", one), ("16, for each store", sixteen)])
    }

    /// What a store takes that finds another process at it all the time. The lock between them is not given in turn.
    private func reportOthers(_ vault: BlockingFileVault) throws {
        Report.say(
            "a store every 2 ms, beside \(Self.writers) tasks of another process that store without end, and alone, in turn"
        )
        let storage = vault.storage(service: "benchmark")
        var (beside, alone) = (Measurement(), Measurement())
        for round in 0..<8 {
            for index in InterleavedMeasurement.order(of: 2, in: round) {
                let others = index == 0 ? try Others(Self.storingWithoutEnd, directory.string) : nil
                defer { others?.end() }
                for number in 0..<500 {
                    usleep(2_000)
                    let store = { _ = try storage.store(secret, for: TokenKey("item-\(number % 100)")) }
                    if index == 0 { try beside.time(store) } else { try alone.time(store) }
                }
            }
        }
        Report.judge(
            "file: store beside \(Self.writers) tasks of another process / alone", Spread(beside, per: alone),
            nil,
            of: [("beside them", beside), ("alone", alone)])
        Report.say([("beside them", beside), ("alone", alone)])
    }

    /// What the other process does. It says when it has begun.
    private func storeWithoutEnd() async throws {
        let vault = try BlockingFileVault.open(
            at: directory.appending("small.vault"), configuration: configuration)
        try vault.unlock(with: method)
        let storage = FileTokenStorage(vault, service: "others")
        try await storage.store(secret, for: "first")
        print("begun")
        fflush(nil)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<Self.writers {
                group.addTask { [secret] in
                    while true { try await storage.store(secret, for: TokenKey("writer-\(writer)")) }
                }
            }
            try await group.waitForAll()
        }
    }
}
