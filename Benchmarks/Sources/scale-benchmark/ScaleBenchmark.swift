import FoundationEssentials
import Glibc
import Measuring
import SystemPackage
import TokenVault

/// Measures what a vault's size costs: `scale-benchmark DIRECTORY VAULTCTL [ITEMS]`. Prints the figures and ends
/// with 1 when a target is missed.
@main
struct ScaleBenchmark {
    static func main() throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 3 else {
            print("usage: scale-benchmark DIRECTORY VAULTCTL [ITEMS]")
            exit(64)
        }
        if arguments[1] == "memory", let items = arguments.count > 3 ? Int(arguments[3]) : nil {
            try ScaleBenchmark(directory: FilePath(arguments[2]), vaultctl: "").printMemory(items)
            return
        }
        let items = arguments.count > 3 ? Int(arguments[3]) ?? 1_000_000 : 1_000_000
        var template = Array(FilePath(arguments[1]).appending("scale-benchmark-XXXXXX").string.utf8CString)
        guard let made = mkdtemp(&template) else { throw Errno(rawValue: errno) }
        let directory = FilePath(platformString: made)
        let benchmark = ScaleBenchmark(directory: directory, vaultctl: arguments[2])
        let missed = Result { try benchmark.run(items: items) }
        system("rm -rf '\(directory)'")
        if try missed.get() > 0 { exit(1) }
    }

    let directory: FilePath
    let vaultctl: String
    private let key = "a benchmark's key, which is no secret at all"

    private var configuration: FileVaultConfiguration {
        FileVaultConfiguration(stateDirectory: directory.appending("state"))
    }

    private func path(_ items: Int) -> FilePath { directory.appending("\(items).vault") }

    /// Runs everything; returns how many targets were missed.
    func run(items: Int) throws -> Int {
        var missed = 0
        func report(_ name: String, _ value: Double, _ limit: Double, _ unit: String) {
            let isMet = value <= limit
            if !isMet { missed += 1 }
            print("  \(isMet ? "met   " : "MISSED")  \(name): \(rounded(value)) \(unit) (at most \(limit))")
        }

        print("filling vaults with items of 256 B")
        for count in [10, 100, 100_000, items] {
            var time = Measurement()
            try time.time { try fill(count, report) }
            if count > 100 {
                print("  \(count): \(rounded(Double(count) / time.p50 * 1e6, places: 0)) a second")
            }
        }

        print("open and unlock with a key file")
        for count in [10, 100_000, items] {
            var times = Measurement()
            for _ in 0..<7 { try times.time { try open(count).close() } }
            print("  \(count) items: p50 \(rounded(times.p50 / 1_000)) ms")
            if count == items { report("at \(items)", times.p50 / 1_000, 300, "ms") }
        }
        report(
            "memory of an open vault of \(items)", try memory(items) / Double(items), 150, "bytes an item")

        try reportStores(items, report)
        try reportRetrievals(report)
        return missed
    }

    private func fill(
        _ count: Int, _ report: (String, Double, Double, String) -> Void
    ) throws {
        let vault = try BlockingFileVault.create(
            at: path(count), unlockMethod: .keyFile(Secret(utf8: key)), configuration: configuration)
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
            if start == 0, count == 100_000 {
                var time = Measurement()
                try time.time { _ = try vault.importItems(items) }
                report("import of 100,000 in one commit, µs an item", time.p50 / 1e5, 10, "µs")
            } else {
                _ = try vault.importItems(items)
            }
        }
        vault.close()
    }

    private func open(_ count: Int) throws -> BlockingFileVault {
        let vault = try BlockingFileVault.open(at: path(count), configuration: configuration)
        try vault.unlock(with: .keyFile(Secret(utf8: key)))
        return vault
    }

    /// What opening a vault and reading from it adds to the memory of a process of its own, in bytes.
    private func memory(_ items: Int) throws -> Double {
        guard let output = popen("'\(CommandLine.arguments[0])' memory '\(directory)' \(items)", "r") else {
            throw Errno(rawValue: errno)
        }
        defer { pclose(output) }
        return Double(try number(in: output, field: 0))
    }

    /// Prints that number. A small vault is opened first: what any vault takes is not counted.
    private func printMemory(_ items: Int) throws {
        let small = try open(10)
        let before = try residentBytes()
        let vault = try open(items)
        for number in 0..<1_000 {
            _ = try vault.storage(service: "default").secret(for: TokenKey("item-\(number * 97 % items)"))
        }
        print(max(0, try residentBytes() - before))
        vault.close()
        small.close()
    }

    private func residentBytes() throws -> Int {
        guard let file = fopen("/proc/self/statm", "r") else { throw Errno(rawValue: errno) }
        defer { fclose(file) }
        return try number(in: file, field: 1) * sysconf(Int32(_SC_PAGESIZE))
    }

    private func number(in file: UnsafeMutablePointer<FILE>, field: Int) throws -> Int {
        var line = [CChar](repeating: 0, count: 128)
        guard fgets(&line, CInt(line.count), file) != nil else { throw Errno.ioError }
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let fields = text.split { $0 == " " || $0 == "\n" }
        guard fields.count > field, let number = Int(fields[field]) else { throw Errno.ioError }
        return number
    }

    private func reportStores(
        _ items: Int, _ report: (String, Double, Double, String) -> Void
    ) throws {
        print("store 256 B, durable, in turn")
        let (small, large) = (try open(100), try open(items))
        let secret = Secret([UInt8](repeating: 0x62, count: 256))
        var (smallTimes, largeTimes) = (Measurement(), Measurement())
        for round in 0..<3_000 {
            let key = TokenKey("item-\(round * 7_919 % items)")
            try smallTimes.time {
                try small.storage(service: "default").store(secret, for: TokenKey("item-\(round % 100)"))
            }
            try largeTimes.time { try large.storage(service: "default").store(secret, for: key) }
        }
        small.close()
        large.close()
        print("  p50 at 100: \(rounded(smallTimes.p50)) µs, p99 \(rounded(smallTimes.percentile(0.99))) µs")
        print(
            "  p50 at \(items): \(rounded(largeTimes.p50)) µs, p99 \(rounded(largeTimes.percentile(0.99))) µs"
        )
        report("store p50 at \(items) / at 100", largeTimes.p50 / smallTimes.p50, 1.3, "×")
    }

    private func reportRetrievals(_ report: (String, Double, Double, String) -> Void) throws {
        print("vaultctl retrieve, whole processes, in turn")
        let keyFile = directory.appending("key")
        system("umask 077; printf '%s' \"\(key)\" >'\(keyFile)'")
        func compare(_ state: String) {
            var (few, many) = (Measurement(), Measurement())
            for _ in 0..<200 {
                few.time { retrieve("item-7", 10, keyFile) }
                many.time { retrieve("item-77777", 100_000, keyFile) }
            }
            print("  10: p50 \(rounded(few.p50 / 1_000)) ms, 100,000: p50 \(rounded(many.p50 / 1_000)) ms")
            report("100,000 items against 10, \(state)", (many.p50 - few.p50) / 1_000, 5, "ms more")
        }
        compare("right after the index")
        let vault = try open(100_000)
        let secret = Secret([UInt8](repeating: 0x63, count: 256))
        for number in 0..<1_540 {
            try vault.storage(service: "default").store(secret, for: TokenKey("item-\(number * 61)"))
        }
        vault.close()
        compare("1,540 commits behind it")
        var times = Measurement()
        for _ in 0..<20 { try times.time { try open(100_000).close() } }
        print("  opening it in process: p50 \(rounded(times.p50 / 1_000)) ms")
    }

    private func retrieve(_ item: String, _ count: Int, _ keyFile: FilePath) {
        Measuring.run(command: [
            vaultctl, "retrieve", "--vault", path(count).string, "--state-dir",
            directory.appending("state").string, "--key-file", keyFile.string, item,
        ])
    }
}
