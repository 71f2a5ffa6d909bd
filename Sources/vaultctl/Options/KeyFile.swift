import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

/// Reads and creates files whose contents open a vault.
enum KeyFile {
    private static let longest = 4_096

    /// Returns the contents of a key file, without a newline at the end that is not one of its 32 bytes. An error uses `name`, if given, in
    /// place of the path.
    static func read(
        _ path: FilePath, _ console: Console, named name: String? = nil
    ) throws(CommandFailure) -> Secret {
        do {
            let input = try console.secretFile(path, name ?? "the key file")
            var bytes = try input.readAll(limit: longest + 1, deadline: console.deadline)
            defer { SmallFile.wipe(&bytes) }
            // A random key of the least length may end in that byte.
            if bytes.count > 32, bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
            return Secret(bytes)
        } catch {
            throw CommandFailure(
                error, name ?? path.told(as: "the key file"), "check its path, its mode and its size")
        }
    }

    /// Gives `body` the contents of the key file at `path`. Creates a missing file from 256 random bits.
    ///
    /// Removes a new file when `body` throws, because no slot uses it then. Signals that end the program wait
    /// until then. A key without a slot and a slot without its key are both useless.
    static func making<Result>(
        _ path: FilePath, _ console: Console, _ body: (Secret) throws(CommandFailure) -> Result
    ) throws(CommandFailure) -> Result {
        let signals = try? SignalForwarder(SignalForwarder.ending)
        defer { if let signal = signals?.next() { signals?.deliver(signal) } }
        guard let made = try make(path) else {
            signals?.stop()
            return try body(try read(path, console))
        }
        let result: Result
        do throws(CommandFailure) { result = try body(made) } catch {
            // A change that may have been made needs its key.
            if !error.mayBeDone { try? SmallFile.remove(path) }
            throw error
        }
        console.remark("Made the key file: keep a copy of it in a safe place.")
        return result
    }

    /// Creates the key file; `nil` when a file exists.
    private static func make(_ path: FilePath) throws(CommandFailure) -> Secret? {
        var generator = SystemRandomNumberGenerator()
        var text: [UInt8] = []
        text.reserveCapacity(65)
        for _ in 0..<32 {
            let byte = UInt8.random(in: 0...255, using: &generator)
            for digit in [byte >> 4, byte & 15] {
                text.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
            }
        }
        defer { SmallFile.wipe(&text) }
        text.append(UInt8(ascii: "\n"))
        do {
            try SmallFile.create(path, text)
        } catch {
            if error.errno == .fileExists { return nil }
            throw CommandFailure(error, "the key file cannot be made", "check its path")
        }
        text.removeLast()
        return Secret(text)
    }
}
