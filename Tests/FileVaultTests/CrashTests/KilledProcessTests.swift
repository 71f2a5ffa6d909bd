import SystemPackage
import TestLanes
import Testing
import TokenVaultPlatform

/// Real processes killed on the real disk. `make crash-test` does thousands of rounds of the same.
@Suite(.tags(.crash)) struct KilledProcessTests {
    @Test func killedWritersLoseNothing() throws {
        let sandbox = try Sandbox()
        let child = try Child(
            testProgram("CrashWriter"), ["60"], output: sandbox.path.appending("output"))
        #expect(child.wait() == 0)
        #expect(try child.readOutput().hasPrefix("60 rounds"))
    }
}
