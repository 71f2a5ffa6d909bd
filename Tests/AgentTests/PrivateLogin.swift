import Glibc
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgentServer

/// A private system bus, with a logind that follows the test's commands. Both stop with the last reference,
/// or when the test process ends in any way.
final class PrivateLogin: @unchecked Sendable {
    // Serializes the commands.
    private let lock = Monitor(())
    private let commands: FileDescriptor
    private let answers: FileDescriptor
    private let process: pid_t
    private let path: String

    /// A directory, and nothing in it; with a bus and a logind unless there is to be `nothing`. Processes are in the session
    /// `own`, or in none.
    init(own: String = "", nothing: Bool = false) throws {
        var template = Array("/tmp/tokenvault-login-XXXXXX".utf8CString)
        let path = try #require(mkdtemp(&template).map { String(cString: $0) })
        self.path = path
        let (input, output) = (try FileDescriptor.pipe(), try FileDescriptor.pipe())
        for end in [input.readEnd, input.writeEnd, output.readEnd, output.writeEnd] {
            try #require(fcntl(end.rawValue, F_SETFD, FD_CLOEXEC) == 0)
        }
        let script = FilePath(#filePath).removingLastComponent().removingLastComponent()
            .appending("Support/Desktop/logind.py")
        let started = Result {
            try Program.start(
                "/usr/bin/python3", ["-B", script.string, path],
                inheriting: [(input.readEnd.rawValue, 0), (output.writeEnd.rawValue, 1)])
        }
        try input.readEnd.close()
        try output.writeEnd.close()
        process = try started.get()
        commands = input.writeEnd
        answers = output.readEnd
        _ = try answer(to: "start")
        guard !nothing else { return }
        try tell("start_bus")
        try tell("start_logind", own)
    }

    deinit {
        try? commands.close()
        try? answers.close()
        _ = Program.wait(for: process)
        _ = try? Program.run("/bin/rm", ["-rf", path])
    }

    /// The bus's address.
    var address: String { "unix:path=\(path)/bus" }

    /// What watches this bus, and looks for it again soon.
    var configuration: SessionWatch.Configuration {
        var configuration = SessionWatch.Configuration()
        configuration.address = address
        configuration.pause = .milliseconds(10)
        configuration.timeout = .seconds(300)
        return configuration
    }

    /// Has something done, and gives what came of it, word by word.
    @discardableResult
    func tell(_ command: String, _ words: String...) throws -> [String] {
        try lock.withLock { _ in
            Result {
                let line = ([command] + words).joined(separator: "\t") + "\n"
                try commands.writeAll(Array(line.utf8))
                return try answer(to: command)
            }
        }.get()
    }

    private func answer(to command: String) throws -> [String] {
        var line: [UInt8] = []
        var byte: [UInt8] = [0]
        while true {
            let count = try byte.withUnsafeMutableBytes { try answers.read(into: $0) }
            try #require(count == 1, "the bus's keeper ended during \(command)")
            if byte[0] == 0x0a { break }
            line.append(byte[0])
        }
        let words = String(decoding: line, as: UTF8.self).split(
            separator: "\t", omittingEmptySubsequences: false
        ).map(String.init)
        try #require(words[0] == "ok", "\(command): \(words)")
        return Array(words.dropFirst())
    }
}
