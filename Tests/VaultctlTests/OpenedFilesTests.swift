import Glibc
import Testing

/// How often a command opens the files that it reads.
@Suite struct OpenedFilesTests {
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox.withVault() }

    /// What one process opens twice may be two files, and a file that is taken apart twice costs its time twice.
    @Test func retrievingOpensNoFileTwice() throws {
        #expect(try sandbox.run("store", "k", "--policy", "when-unlocked", input: "fake").status == 0)
        let directories = try [
            #require(sandbox.vault.lastIndex(of: "/").map { String(sandbox.vault[..<$0]) }),
            "\(sandbox.home)",
            "\(sandbox.home)/.local/state/tokenvault",
        ].map { try OpenedNames(in: $0) }
        let retrieved = try sandbox.run("retrieve", "k")
        #expect(retrieved.text == "fake" && retrieved.status == 0, "\(retrieved.error)")
        let opened = try directories.flatMap { try $0.read() }.filter { !$0.isEmpty }
        #expect(opened.contains("default.vault") && opened.contains("vault.key"), "\(opened)")
        #expect(Set(opened).count == opened.count, "\(opened)")
    }
}

/// The names of files in a directory that are opened, of which inotify(7) tells.
private final class OpenedNames {
    private let notifier: Int32

    init(in directory: String) throws {
        notifier = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
        try #require(notifier >= 0)
        try #require(inotify_add_watch(notifier, directory, UInt32(IN_OPEN)) >= 0)
    }

    deinit { close(notifier) }

    /// The names so far, each as often as it was opened; an empty one for the directory itself.
    func read() throws -> [String] {
        var names: [String] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        let count = Glibc.read(notifier, &buffer, buffer.count)
        try #require(count >= 0 || errno == EAGAIN)
        var place = 0
        while place + 16 <= count {
            // struct inotify_event: int wd; uint32_t mask, cookie, len; char name[len].
            let length = buffer[(place + 12)..<(place + 16)].reversed().reduce(0) { $0 << 8 | Int($1) }
            let name = buffer[(place + 16)..<(place + 16 + length)].prefix { $0 != 0 }
            names.append(String(decoding: name, as: UTF8.self))
            place += 16 + length
        }
        return names
    }
}
