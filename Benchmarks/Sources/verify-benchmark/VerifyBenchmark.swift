import BareCryptography
import FoundationEssentials
import Glibc
import Measuring
import SystemPackage
import TokenVault

/// Measures verifying a vault against the AEAD and the hashing it takes, on every processor, in turn:
/// `verify-benchmark DIRECTORY`.
@main
struct VerifyBenchmark {
    static func main() async throws {
        let parent = CommandLine.arguments.count > 1 ? CommandLine.arguments[1] : "."
        try await withTemporaryDirectory(in: parent) { path in
            let benchmark = VerifyBenchmark(directory: FilePath(path))
            for (size, items) in [(256, 200_000), (1_024, 100_000), (16_384, 8_000)] {
                try benchmark.report(size: size, items: items)
            }
        }
    }

    let directory: FilePath

    /// How fast verifying a vault of `items` values of `size` bytes is, and how fast what it takes.
    private func report(size: Int, items: Int) throws {
        let path = directory.appending("\(size).vault")
        let vault = try BlockingFileVault.create(
            at: path, unlockMethod: .keyFile(Secret(utf8: "a benchmark's key, which is no secret at all")),
            configuration: FileVaultConfiguration(stateDirectory: directory.appending("state")))
        defer { vault.close() }
        let secret = Secret([UInt8](repeating: 0x61, count: size))
        // One commit with one index behind it, as after an import or a compaction.
        _ = try vault.importItems(
            (0..<items).map { number in
                TokenItem(
                    metadata: TokenMetadata(
                        key: TokenKey("item-\(number)"), service: "default", policy: .whenUnlocked,
                        created: Date(), modified: Date(), generation: Generation(rawValue: 0)),
                    secret: secret)
            })
        let (metadata, body) = try lengths(path)
        let processors = sysconf(Int32(_SC_NPROCESSORS_ONLN))
        var (ours, bare) = (Measurement(), Measurement())
        for round in 0..<16 {
            for index in InterleavedMeasurement.order(of: 2, in: round) {
                if index == 0 {
                    try ours.time {
                        let report = try vault.verify()
                        guard report.isClean, report.items == items else { throw Errno.ioError }
                    }
                } else {
                    let seconds = bare_verification(items, metadata, body, Int32(processors))
                    guard seconds > 0 else { throw Errno.noMemory }
                    bare.add(seconds * 1e6)
                }
            }
        }
        Report.say(
            "verify \(items) items of \(size) B, and its cryptography, on \(processors) processors, in turn")
        Report.judge(
            "file: rate of verifying \(items) items of \(size) B / of its cryptography on all cores",
            Spread(bare, per: ours), .atLeast(0.9), of: [("verify", ours), ("cryptography", bare)])
    }

    /// What the sealed metadata and body of an item take: most frames are items and as long as their prefixes say, and
    /// the metadata is that of a short name.
    private func lengths(_ path: FilePath) throws -> (metadata: Int, body: Int) {
        guard let file = fopen(path.string, "r") else { throw Errno(rawValue: errno) }
        defer { fclose(file) }
        var offset = 16_896
        var counts: [Int: Int] = [:]
        for _ in 0..<100 {
            var prefix = [UInt8](repeating: 0, count: 8)
            guard fseek(file, offset, SEEK_SET) == 0, fread(&prefix, 1, 8, file) == 8 else { break }
            counts[length(prefix), default: 0] += 1
            offset += length(prefix)
        }
        guard let frame = counts.max(by: { $0.value < $1.value })?.key else { throw Errno.ioError }
        return (128, frame - 224 - 128)
    }

    private func length(_ prefix: [UInt8]) -> Int {
        prefix[4..<8].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
