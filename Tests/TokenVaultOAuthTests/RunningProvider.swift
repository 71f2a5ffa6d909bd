#if OAuth
import Foundation
import Glibc
import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform
@testable import TokenVaultOAuth

/// django-oauth-toolkit as a server of its own (Tests/Support/OAuth/server.py), that ends with the last reference, or with
/// the test process however that ends.
final class RunningProvider: @unchecked Sendable {
    // Serializes the commands.
    private let lock = Mutex(())
    private let commands: FileDescriptor
    private let answers: FileDescriptor
    private let process: pid_t
    private let directory: FilePath
    /// What it said when it began to serve.
    let facts: JSON

    /// The value of a JSON document that tests look into.
    struct JSON: @unchecked Sendable {
        let value: Any?
        subscript(_ name: String) -> JSON { JSON(value: (value as? [String: Any])?[name]) }
        subscript(_ index: Int) -> JSON { JSON(value: (value as? [Any])?[index]) }
        var text: String { value as? String ?? "" }
        var number: Int { (value as? NSNumber)?.intValue ?? 0 }
        var count: Int { (value as? [Any])?.count ?? 0 }
    }

    struct CommandFailed: Error { let reason: String }

    init() throws {
        let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
        let python = root.appending(".build-oauth-server/bin/python").string
        try #require(access(python, X_OK) == 0, "run Scripts/setup --tests first")
        var template = Array("/tmp/tokenvault-oauth-XXXXXX".utf8CString)
        directory = FilePath(String(cString: try #require(mkdtemp(&template))))
        let input = try FileDescriptor.pipe()
        let output = try FileDescriptor.pipe()
        // Other children of this process must not hold these descriptors.
        for end in [input.readEnd, input.writeEnd, output.readEnd, output.writeEnd] {
            _ = fcntl(end.rawValue, F_SETFD, FD_CLOEXEC)
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, input.readEnd.rawValue, 0)
        posix_spawn_file_actions_adddup2(&actions, output.writeEnd.rawValue, 1)
        let server = root.appending("Tests/Support/OAuth/server.py").string
        let words = [python, "-B", server, directory.string]
        let arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        let settings = ["PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"]
        let environment: [UnsafeMutablePointer<CChar>?] = settings.map { strdup($0) } + [nil]
        defer { for word in arguments + environment { free(word) } }
        var process = pid_t()
        let status = posix_spawn(&process, python, &actions, nil, arguments, environment)
        try input.readEnd.close()
        try output.writeEnd.close()
        try #require(status == 0)
        self.process = process
        commands = input.writeEnd
        answers = output.readEnd
        facts = JSON(value: try JSONSerialization.jsonObject(with: try Self.line(of: answers)))
    }

    deinit {
        try? commands.close()
        try? answers.close()
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        try? FileManager.default.removeItem(atPath: directory.string)
    }

    var issuer: String { facts["issuer"].text }
    var origin: String { facts["origin"].text }
    func clientID(_ name: String) -> String { facts["clients"][name]["id"].text }

    /// Has something done, and gives the answer. It blocks: only what is quick.
    @discardableResult
    func tell(_ command: String, _ arguments: [String: any Sendable] = [:]) throws -> JSON {
        try lock.withLock { _ in
            let words = try JSONSerialization.data(
                withJSONObject: arguments.merging(["do": command]) { $1 } as [String: Any])
            _ = try commands.writeAll(Array(words) + [0x0a])
            let answer = JSON(value: try JSONSerialization.jsonObject(with: try Self.line(of: answers)))
            guard (answer["ok"].value as? Bool) == true else {
                throw CommandFailed(reason: answer["error"].text)
            }
            return answer
        }
    }

    /// As ``tell(_:_:)``, on a thread of its own: what a person does may come back to the test's own listener.
    func have(_ command: String, _ arguments: [String: any Sendable] = [:]) async throws -> JSON {
        let thread = WorkerThread(name: "person")
        return try await withCheckedThrowingContinuation { continuation in
            thread.run { continuation.resume(with: Result { try self.tell(command, arguments) }) }
        }
    }

    /// How often tokens were asked for with `grant`.
    func requests(_ grant: String) throws -> Int { try tell("count")["requests"][grant].number }

    private static func line(of descriptor: FileDescriptor) throws -> Data {
        var line: [UInt8] = []
        var byte: [UInt8] = [0]
        while true {
            let count = try byte.withUnsafeMutableBytes { try descriptor.read(into: $0) }
            try #require(count == 1, "the provider ended")
            if byte[0] == 0x0a { return Data(line) }
            line.append(byte[0])
        }
    }
}
#endif
