import FoundationEssentials
import Glibc
import Measuring
import SystemPackage
import TokenVault

/// Measures what a vault's size costs: `scale-benchmark DIRECTORY VAULTCTL [ITEMS]`.
@main
struct ScaleBenchmark {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 3 else {
            print("usage: scale-benchmark DIRECTORY VAULTCTL [ITEMS]")
            exit(64)
        }
        if let kind = Memory(rawValue: arguments[1]),
            let items = arguments.count > 3 ? Int(arguments[3]) : nil
        {
            try ScaleBenchmark(directory: FilePath(arguments[2]), vaultctl: "").printMemory(kind, items)
            return
        }
        let items = arguments.count > 3 ? Int(arguments[3]) ?? 1_000_000 : 1_000_000
        try await withTemporaryDirectory(in: arguments[1]) { path in
            try ScaleBenchmark(directory: FilePath(path), vaultctl: arguments[2]).run(items: items)
        }
    }

    let directory: FilePath
    let vaultctl: String
    private let key = "a benchmark's key, which is no secret at all"

    private var configuration: FileVaultConfiguration {
        FileVaultConfiguration(stateDirectory: directory.appending("state"))
    }

    private func path(_ items: Int) -> FilePath { directory.appending("\(items).vault") }

    private func run(items: Int) throws {
        Report.say("filling vaults with items of 256 B")
        for count in [10, 100, 100_000, items] { try fill(path(count), count) }
        try reportBatches()
        try reportOpening(items)
        for (kind, name) in [(Memory.opening, "an open vault"), (.verifying, "verifying a vault")] {
            Report.judge(
                "file: memory of \(name) of \(items)",
                try Spread(of: (0..<3).map { _ in try memory(kind, items) / Double(items) }), .atMost(100),
                unit: "bytes an item")
        }
        try reportStores(items)
        try reportWholeVaults(items)
        try reportRetrievals()
    }

    private func fill(
        _ path: FilePath, _ count: Int, _ time: (() throws -> Void) throws -> Void = { try $0() }
    ) throws {
        let vault = try BlockingFileVault.create(
            at: path, unlockMethod: .keyFile(Secret(utf8: key)), configuration: configuration)
        let secret = Secret([UInt8](repeating: 0x61, count: 256))
        for start in stride(from: 0, to: count, by: 100_000) {
            let items = (start..<min(count, start + 100_000)).map { number in
                TokenItem(
                    metadata: TokenMetadata(
                        key: TokenKey("item-\(number)"), service: "default", policy: .whenUnlocked,
                        created: Date(), modified: Date(),
                        generation: Generation(rawValue: 0)),
                    secret: secret)
            }
            try time { _ = try vault.importItems(items) }
        }
        vault.close()
    }

    /// Each into a new vault. That it is one commit, and one sync before it is acknowledged, tests hold.
    private func reportBatches() throws {
        let count = 100_000
        let secret = Secret([UInt8](repeating: 0x61, count: 256))
        let changes = (0..<count).map { TokenChange.store(secret, for: TokenKey("item-\($0)")) }
        let path = directory.appending("batch.vault")
        var (importing, committing) = (Measurement(), Measurement())
        for round in 0..<7 {
            for index in InterleavedMeasurement.order(of: 2, in: round) {
                if index == 0 {
                    try fill(path, count) { try importing.time($0) }
                } else {
                    let vault = try BlockingFileVault.create(
                        at: path, unlockMethod: .keyFile(Secret(utf8: key)), configuration: configuration)
                    try committing.time { _ = try vault.storage(service: "default").commit(changes) }
                    vault.close()
                }
                try BlockingFileVault.destroy(at: path, configuration: configuration)
            }
        }
        for (name, times) in [("import", importing), ("commit", committing)] {
            Report.judge(
                "file: \(name) of 100,000 items of 256 B at once", times.median.inverse * 1e11,
                .atLeast(200_000), unit: "items a second", of: [(name, times)])
        }
    }

    private func reportOpening(_ items: Int) throws {
        Report.say("open and unlock with a key file, warm")
        for count in [10, 100_000, items] {
            var times = Measurement()
            for _ in 0..<1001 { try times.time { try open(count).close() } }
            Report.judge(
                "file: open \(count) items, warm", times.median * 1e-3, count == items ? .atMost(100) : nil,
                unit: "ms")
        }
    }

    private func open(_ count: Int) throws -> BlockingFileVault {
        let vault = try BlockingFileVault.open(at: path(count), configuration: configuration)
        try vault.unlock(with: .keyFile(Secret(utf8: key)))
        return vault
    }

    /// What memory is counted for.
    private enum Memory: String {
        case opening, verifying
    }

    /// What that adds to the memory of a process of its own, in bytes.
    private func memory(_ kind: Memory, _ items: Int) throws -> Double {
        let command = "'\(CommandLine.arguments[0])' \(kind.rawValue) '\(directory)' \(items)"
        guard let output = popen(command, "r") else { throw Errno(rawValue: errno) }
        defer { pclose(output) }
        return Double(try number(in: output, field: 0))
    }

    /// Prints that number: of an open vault that was read from, or at most while one is verified. A small vault is opened first:
    /// what any vault takes is not counted.
    private func printMemory(_ kind: Memory, _ items: Int) throws {
        let small = try open(10)
        if kind == .verifying { _ = try small.verify() }
        let before = try residentBytes()
        let vault = try open(items)
        switch kind {
        case .opening:
            for number in 0..<1_000 {
                _ = try vault.storage(service: "default").secret(
                    for: TokenKey("item-\(number * 97 % items)"))
            }
            print(max(0, try residentBytes() - before))
        case .verifying:
            guard try vault.verify().isClean else { throw Errno.ioError }
            print(max(0, try mostResidentBytes() - before))
        }
        vault.close()
        small.close()
    }

    private func residentBytes() throws -> Int {
        guard let file = fopen("/proc/self/statm", "r") else { throw Errno(rawValue: errno) }
        defer { fclose(file) }
        return try number(in: file, field: 1) * sysconf(Int32(_SC_PAGESIZE))
    }

    /// The most that this process ever had.
    private func mostResidentBytes() throws -> Int {
        guard let output = popen("grep VmHWM /proc/\(getpid())/status", "r") else {
            throw Errno(rawValue: errno)
        }
        defer { pclose(output) }
        return try number(in: output, field: 1) * 1_024
    }

    private func number(in file: UnsafeMutablePointer<FILE>, field: Int) throws -> Int {
        var line = [CChar](repeating: 0, count: 128)
        guard fgets(&line, CInt(line.count), file) != nil else { throw Errno.ioError }
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let fields = text.split { $0 == " " || $0 == "\n" || $0 == "\t" }
        guard fields.count > field, let number = Int(fields[field]) else { throw Errno.ioError }
        return number
    }

    private func reportStores(_ items: Int) throws {
        Report.say("store 1 KiB, durable, among 100 and among \(items), in turn")
        let (small, large) = (try open(100), try open(items))
        let secret = Secret([UInt8](repeating: 0x62, count: 1_024))
        var (smallTimes, largeTimes) = (Measurement(), Measurement())
        for round in 0..<3_000 {
            let key = TokenKey("item-\(round * 7_919 % items)")
            for index in InterleavedMeasurement.order(of: 2, in: round) {
                if index == 0 {
                    try smallTimes.time {
                        try small.storage(service: "default").store(
                            secret, for: TokenKey("item-\(round % 100)"))
                    }
                } else {
                    try largeTimes.time { try large.storage(service: "default").store(secret, for: key) }
                }
            }
        }
        small.close()
        large.close()
        Report.judge(
            "file: store 1 KiB among \(items) / among 100", Spread(largeTimes, per: smallTimes), .atMost(1.2),
            of: [("among \(items)", largeTimes), ("among 100", smallTimes)])
    }

    /// What goes through all of a vault.
    private func reportWholeVaults(_ items: Int) throws {
        let fewer = 100_000
        Report.say("verify and compact vaults of \(items) and of \(fewer) items of 256 B, in turn")
        let (small, large) = (try open(fewer), try open(items))
        func compare(
            _ what: String, _ turns: Int, _ operation: (BlockingFileVault) throws -> Void
        ) throws {
            var (smallTimes, largeTimes) = (Measurement(), Measurement())
            for round in 0..<turns {
                for index in InterleavedMeasurement.order(of: 2, in: round) {
                    if index == 0 {
                        try smallTimes.time { try operation(small) }
                    } else {
                        try largeTimes.time { try operation(large) }
                    }
                }
            }
            Report.judge(
                "file: \(what) an item of \(items) / of \(fewer)",
                Spread(largeTimes, per: smallTimes) * (Double(fewer) / Double(items)), nil,
                of: [("\(what) \(items)", largeTimes), ("\(what) \(fewer)", smallTimes)])
        }
        try compare("verify", 5) { guard try $0.verify().isClean else { throw Errno.ioError } }
        try compare("compact", 3) { _ = try $0.compact() }
        small.close()
        large.close()
    }

    private func reportRetrievals() throws {
        Report.say(
            "vaultctl retrieve with a key file, whole processes, from 10 and from 100,000 items, in turn")
        let keyFile = directory.appending("key")
        system("umask 077; printf '%s' \"\(key)\" >'\(keyFile)'")
        func compare(_ state: String) {
            var (few, many, more) = (Measurement(), Measurement(), Measurement())
            for round in 0..<200 {
                for index in InterleavedMeasurement.order(of: 2, in: round) {
                    if index == 0 {
                        few.time { retrieve("item-7", 10, keyFile) }
                    } else {
                        many.time { retrieve("item-77777", 100_000, keyFile) }
                    }
                }
                more.add(many.last - few.last)
            }
            Report.judge(
                "vaultctl: retrieve from 100,000 items, \(state), more than from 10", more.median * 1e-3,
                .atMost(5),
                unit: "ms", of: [("10", few), ("100,000", many)])
        }
        compare("right after the index")
        let vault = try open(100_000)
        let secret = Secret([UInt8](repeating: 0x63, count: 256))
        for number in 0..<1_540 {
            try vault.storage(service: "default").store(secret, for: TokenKey("item-\(number * 61)"))
        }
        vault.close()
        compare("1,540 commits behind it")
    }

    private func retrieve(_ item: String, _ count: Int, _ keyFile: FilePath) {
        Measuring.run(command: [
            vaultctl, "retrieve", "--vault", path(count).string, "--state-dir",
            directory.appending("state").string, "--key-file", keyFile.string, item,
        ])
    }
}
