import Glibc
import SystemPackage
import TestLanes
import Testing
import TokenVault

/// Real processes on one real keyring.
@Suite(.tags(.desktop), .from(.usual)) struct KeyringProcessesTests {
    @Test func eightProcessesOfTwoHundredStoresLoseNothing() throws {
        let desktop = try PrivateDesktop.withKeyring()
        let workers = try (0..<8).map { number in
            try Worker(desktop, "worker\(number)", rounds: 200)
        }
        var counted = 0
        var held: [String: String] = [:]
        for worker in workers {
            let output = worker.output()
            for line in output.split(separator: "\n") {
                let words = line.split(separator: " ", maxSplits: 2)
                #expect(words.first != "failed", "\(line)")
                if words.first == "counted", let number = Int(words[1]) { counted += number }
                if words.first == "holds" { held[String(words[1])] = String(words[2]) }
            }
        }
        #expect(counted == 8 * 20 && held.count == 8 * 5)
        let storage = desktop.service().storage(service: "workers").blocking
        #expect(try storage.retrieve(for: "counter") == String(counted))
        for (key, value) in held { #expect(try storage.retrieve(for: TokenKey(key)) == value, "\(key)") }
        // Each key has one item, so nothing was duplicated.
        #expect(try storage.list().items.count == held.count + 1)
        let paths = try desktop.tell("items", "xdg:schema", "org.tokenvault.Token")
        #expect(paths.count == held.count + 1)
    }
}

/// One KeyringWorker.
private final class Worker {
    private let process: pid_t
    private let file: FilePath

    init(_ desktop: PrivateDesktop, _ name: String, rounds: Int) throws {
        file = FilePath("\(desktop.path)/\(name)")
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, file.string, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        let words = [testProgram("KeyringWorker"), desktop.address, name, String(rounds)]
        process = try spawn(words, &actions, ["PATH=/usr/bin:/bin"])
    }

    /// Waits for its end; what it printed.
    func output() -> String {
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        #expect(status == 0)
        return contents(of: file) ?? ""
    }
}

/// The path of a program that the test build made, beside the test bundle.
func testProgram(_ name: String) -> String {
    var buffer = [UInt8](repeating: 0, count: 4_096)
    let length = readlink("/proc/self/exe", &buffer, buffer.count)
    var path = FilePath(String(decoding: buffer[..<max(length, 0)], as: UTF8.self))
    // The tests run in a helper of the toolchain or in the bundle itself. In the helper, the bundle's path is
    // an argument.
    if let bundle = CommandLine.arguments.first(where: { $0.hasSuffix(".xctest") }) {
        path = FilePath(bundle)
    }
    return path.removingLastComponent().appending(name).string
}
