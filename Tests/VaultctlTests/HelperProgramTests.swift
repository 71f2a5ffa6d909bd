import SystemPackage
import Testing
import TokenVaultPlatform

/// What is read of a program that is asked something, and until when.
@Suite struct HelperProgramTests {
    private func program(_ script: String) throws -> HelperProgram {
        try HelperProgram("/bin/sh", ["-c", script], environment: ["PATH=/usr/bin:/bin"], isSpokenTo: true)
    }

    private func line(
        of program: HelperProgram, evenIfLate: Bool, deadline: Deadline? = Deadline(after: .zero)
    ) throws -> String? {
        try program.readLine(limit: 100, deadline: deadline, evenIfLate: evenIfLate)
            .map { String(decoding: $0, as: UTF8.self) }
    }

    /// What is there when the time is over is there.
    @Test func whatWasSaidInTimeIsReadLater() throws {
        // The first line waits for the second, which is therefore in the pipe.
        let program = try program("printf 'one\\ntwo\\n'; read line; echo three; read line")
        #expect(try line(of: program, evenIfLate: true, deadline: nil) == "one")
        #expect(throws: SystemFailure.self) { try line(of: program, evenIfLate: false) }
        #expect(try line(of: program, evenIfLate: true) == "two")
        let failure = #expect(throws: SystemFailure.self) { try line(of: program, evenIfLate: true) }
        #expect(failure?.errno == .timedOut)
        try program.write("\n", deadline: nil)
        #expect(try line(of: program, evenIfLate: true, deadline: nil) == "three")
    }
}
