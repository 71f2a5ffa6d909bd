import Glibc
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

/// What a forked child has of its parent's vault: nothing.
@Suite struct ForkTests {
    @Test func everyCallOfAChildIsRefusedAndItsOwnVaultWorks() throws {
        let sandbox = try Sandbox()
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        vault.close()
        let probe = try Child(
            testProgram("ForkProbe"),
            ["use", sandbox.vault.string, sandbox.path.appending("state").string, "40"],
            output: sandbox.path.appending("output"))
        #expect(probe.wait() == 0)
        #expect(try probe.readOutput() == "done 40\n")
    }

    /// A lock belongs to all processes that share an open file. A child would keep the lock after its parent
    /// ended.
    @Test func aChildKeepsNoLockOfADeadParent() throws {
        let sandbox = try Sandbox()
        let directory = try PosixDirectory(sandbox.path)
        let file = try directory.open("file", .create)
        let probe = try Child(
            testProgram("ForkProbe"), ["leave", sandbox.path.string, "file"],
            output: sandbox.path.appending("output"))
        #expect(probe.wait() == 0)
        let output = try probe.readOutput()
        let child = try #require(pid_t(output.dropLast()), "\(output)")
        #expect(kill(child, 0) == 0)
        #expect(try file.tryLock(.exclusive))
        _ = kill(child, SIGKILL)
    }
}
