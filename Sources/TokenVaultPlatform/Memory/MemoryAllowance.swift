package import SystemPackage

/// The memory that the control groups of this process allow. Beyond it the process is killed instead of
/// getting an error.
package enum MemoryAllowance {
    /// The directory that contains `proc` and `sys`.
    @TaskLocal package static var root: FilePath = "/"

    /// Returns the bytes that may still be allocated, or `nil` without a limit. The strictest of the nested
    /// groups counts. Reclaimable memory, such as cached files, does not count as used. Reads
    /// `/proc/self/cgroup`, `memory.max` and `memory.stat` (cgroups(7)), or `memory.limit_in_bytes` of
    /// version 1.
    package static func remaining() -> UInt64? {
        guard let text = text(of: root.appending("proc/self/cgroup")) else { return nil }
        var least: UInt64?
        for line in text.split(separator: "\n") {
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { continue }
            let isSecond = fields[0] == "0" && fields[1].isEmpty
            guard isSecond || fields[1].split(separator: ",").contains("memory") else { continue }
            let base = root.appending(isSecond ? "sys/fs/cgroup" : "sys/fs/cgroup/memory")
            var components = fields[2].split(separator: "/").filter { $0 != ".." && $0 != "." }
            while true {
                let group = components.reduce(base) { $0.appending(String($1)) }
                if let left = remaining(in: group, isSecond: isSecond) { least = min(least ?? left, left) }
                if components.isEmpty { break }
                components.removeLast()
            }
        }
        return least
    }

    /// Returns the bytes that can be allocated without swapping (`MemAvailable` of `/proc/meminfo`, proc(5)),
    /// or the rest that the control groups allow. The smaller number counts; `nil` when neither is known.
    package static func available() -> UInt64? {
        let line = text(of: root.appending("proc/meminfo"))?.split(separator: "\n")
            .first { $0.hasPrefix("MemAvailable:") }
        let kibibytes = line?.split(whereSeparator: { !("0"..."9").contains($0) }).first.flatMap {
            UInt64($0)
        }
        guard let kibibytes else { return remaining() }
        let bytes = kibibytes.multipliedReportingOverflow(by: 1_024)
        let free = bytes.overflow ? .max : bytes.partialValue
        return min(free, remaining() ?? free)
    }

    private static func remaining(in group: FilePath, isSecond: Bool) -> UInt64? {
        let name = isSecond ? "memory.max" : "memory.limit_in_bytes"
        guard let limit = text(of: group.appending(name)).flatMap({ UInt64($0.prefix { $0 != "\n" }) }) else {
            return nil
        }
        let taken = isSecond ? "anon " : "total_rss "
        let statistics = text(of: group.appending("memory.stat")) ?? ""
        let line = statistics.split(separator: "\n").first { $0.hasPrefix(taken) }
        let used = line.flatMap { UInt64($0.dropFirst(taken.count)) } ?? 0
        return limit > used ? limit - used : 0
    }

    private static func text(of path: FilePath) -> String? {
        guard let bytes = try? SmallFile.read(path, limit: 64 << 10).bytes else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }
}
