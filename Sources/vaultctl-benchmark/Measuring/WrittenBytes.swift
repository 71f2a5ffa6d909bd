import SystemPackage
import TokenVaultPlatform

/// The number of bytes that this process has passed to the kernel for writing.
enum WrittenBytes {
    /// The `wchar` count of `/proc/self/io` (proc(5)); `nil` where the kernel does not count.
    static var now: Int? {
        guard let file = try? SmallFile.read("/proc/self/io", limit: 4_096) else { return nil }
        for line in String(decoding: file.bytes, as: UTF8.self).split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count == 2, words[0] == "wchar:" { return Int(words[1]) }
        }
        return nil
    }

    /// Returns the number of bytes that `body` writes. Takes the least of 8 runs, since `body` may do extra
    /// work at times. `nil` where the kernel does not count.
    static func least<Failure: Error>(_ body: (Int) throws(Failure) -> Void) throws(Failure) -> Int? {
        var least: Int?
        for index in 0..<8 {
            guard let before = now else { return nil }
            try body(index)
            guard let after = now else { return nil }
            least = min(least ?? .max, after - before)
        }
        return least
    }
}
