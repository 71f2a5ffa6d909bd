import SystemPackage
import Testing
import TokenVaultPlatform

@testable import TokenVault

/// A tail of any size costs no memory of its size.
@Suite struct LargeTailTests {
    /// The most memory that a process took which read, salvaged and wrote to the vault, in KiB.
    private func peak(_ sandbox: Sandbox, out: String) throws -> Int {
        let probe = try Child(
            testProgram("LimitProbe"),
            [
                "memory", sandbox.vault.string, sandbox.path.appending("state").string,
                sandbox.path.appending(out).string,
            ], output: sandbox.path.appending("output"))
        let status = probe.wait()
        let told = try probe.readOutput()
        try #require(status == 0, "\(told)")
        return try #require(Int(told.dropLast()), "\(told)")
    }

    @Test func whatACrashLeftIsLookedAtAPieceAtATime() throws {
        let sandbox = try Sandbox()
        try sandbox.made().close()
        let plain = try peak(sandbox, out: "first.vault")
        // The beginning of a write, and its end far behind: what is between takes no room on the disk.
        let file = try PosixDirectory(sandbox.vault.removingLastComponent()).open("test.vault", .readWrite)
        let bytes = try sandbox.bytes()
        let end = (try #require(bytes.lastIndex { $0 != 0 }) + 8) / 8 * 8
        try file.write([UInt8](repeating: 0xa5, count: 40), at: end)
        try file.write([0xa5], at: end + (64 << 20))
        let torn = try peak(sandbox, out: "second.vault")
        #expect(torn < plain + (24 << 10), "\(torn) KiB with the tail, \(plain) KiB without")
        #expect(try values(in: try sandbox.opened()).count == 3)
    }
}
