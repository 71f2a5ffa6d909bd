import Glibc
import TestLanes
import Testing

/// What `status` says of the memory that keys lie in.
@Suite(.tags(.programs), .from(.usual)) struct KeyMemoryTests {
    @Test func statusTellsThatKeysAreLocked() throws {
        let sandbox = try Sandbox.withVault()
        #expect(try sandbox.run("status", "--json").text.contains(#""keyMemory":"locked""#))
        #expect(try sandbox.run("status").text.contains("key memory:  locked"))
    }

    /// Where no memory can be locked, the vault works, and `status` says so.
    @Test func statusTellsThatKeysCouldNotBeLocked() throws {
        let sandbox = try Sandbox.withVault()
        // Root ignores the limit unless it has no capabilities.
        let drop = geteuid() == 0 ? "setpriv --bounding-set=-all --inh-caps=-all" : ""
        let told = try sandbox.shell(
            """
            prlimit --memlock=0:0 \(drop) "$V" status --json
            prlimit --memlock=0:0 \(drop) "$V" status
            printf fake | prlimit --memlock=0:0 \(drop) "$V" store k
            prlimit --memlock=0:0 \(drop) "$V" retrieve k
            """)
        #expect(told.status == 0, "\(told.error)")
        #expect(told.text.contains(#""keyMemory":"unlocked""#))
        #expect(told.text.contains("key memory:  not locked: raise the limit of locked memory (ulimit -l)\n"))
        #expect(told.text.hasSuffix("fake"))
    }
}
