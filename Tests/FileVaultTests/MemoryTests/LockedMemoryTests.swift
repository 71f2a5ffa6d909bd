import Glibc
import SystemPackage
import TestLanes
import Testing

/// What is left in memory after a lock: looked for by a process of its own, from inside.
@Suite struct LockedMemoryTests {
    /// A reader in another process would see no page of `memfd_secret`, and root has no limit on locked
    /// memory. The probe therefore reads its own memory, and has no capabilities.
    @Test(.tags(.endurance), .from(.all), arguments: [nil, "secret", "agent"] as [String?])
    func nothingIsLeftAfterTwoHundredLocks(_ variant: String?) throws {
        let sandbox = try Sandbox()
        let output = sandbox.path.appending("output")
        var arguments = [sandbox.vault.string, sandbox.path.appending("state").string, "200"]
        if let variant { arguments.append(variant) }
        let probe = testProgram("MemoryProbe")
        // Lazy binding leaves copies of vector registers on the stack: see ThreatModel.md.
        setenv("LD_BIND_NOW", "1", 1)
        let child =
            geteuid() == 0
            ? try Child(
                "/usr/bin/setpriv", ["--bounding-set=-all", "--inh-caps=-all", probe.string] + arguments,
                output: output)
            : try Child(probe, arguments, output: output)
        #expect(child.wait() == 0)
        let told = try child.readOutput()
        #expect(told.hasPrefix("done: 200 cycles, "), "\(told)")
        let memory = variant == "secret" ? "secret" : "locked"
        #expect(told.hasSuffix(" keys, 7 others, \(memory)\n"), "\(told)")
    }
}
