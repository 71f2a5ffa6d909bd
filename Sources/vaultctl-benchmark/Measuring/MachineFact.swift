import SystemPackage
import TokenVault
import TokenVaultPlatform

/// A fact about this machine that affects the figures.
struct MachineFact {
    let name: String
    let value: String

    /// Returns all facts, including the type of the file system of `directory`.
    static func all(of directory: FilePath, version: String) -> [MachineFact] {
        let cpu = lines("/proc/cpuinfo")
        let count = cpu.count { $0.hasPrefix("processor") }
        let model = cpu.first { $0.hasPrefix("model name") }?.split(separator: ":", maxSplits: 1).last
        var facts: [MachineFact] = []
        if count > 0 {
            let name = model.map { " × \(trimmed($0))" } ?? ""
            facts.append(MachineFact(name: "Processors", value: "\(count)\(name)"))
        }
        if let kernel = lines("/proc/sys/kernel/osrelease").first {
            facts.append(MachineFact(name: "Kernel", value: "Linux \(kernel)"))
        }
        if let type = fileSystem(of: directory) {
            facts.append(MachineFact(name: "File system", value: type))
        }
        facts.append(MachineFact(name: "vaultctl", value: version))
        facts.append(MachineFact(name: "libsodium", value: LinkedLibraries.sodiumVersion))
        return facts
    }

    private static func lines(_ path: FilePath) -> [Substring] {
        guard let file = try? SmallFile.read(path, limit: 1 << 20) else { return [] }
        return String(decoding: file.bytes, as: UTF8.self).split(separator: "\n")
    }

    private static func trimmed(_ text: Substring) -> String {
        text.split(separator: " ").joined(separator: " ")
    }

    /// Returns the type of the file system that is mounted nearest above `directory` (proc_pid_mountinfo(5)).
    private static func fileSystem(of directory: FilePath) -> String? {
        var nearest: (length: Int, type: String)?
        for line in lines("/proc/self/mountinfo") {
            let words = line.split(separator: " ")
            guard words.count > 6, let dash = words.firstIndex(of: "-"), dash + 1 < words.count else {
                continue
            }
            let place = FilePath(unescaped(words[4]))
            guard directory.starts(with: place) else { continue }
            // Of two mounts at one place, the later hides the earlier.
            if place.length >= nearest?.length ?? 0 { nearest = (place.length, String(words[dash + 1])) }
        }
        return nearest?.type
    }

    /// Replaces octal escapes, which stand for spaces and similar characters in the mount table.
    private static func unescaped(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3)
            if byte == UInt8(ascii: "\\"), digits.count == 3,
                let code = UInt8(String(decoding: digits, as: UTF8.self), radix: 8)
            {
                bytes.append(code)
                rest = rest.dropFirst(3)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
