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

    /// A signal that came before it was started, and that nobody tells of any more: it parts at once, and has its last word.
    @Test(.timeLimit(.minutes(1))) func whoIsStartedAfterASignalParts() throws {
        let came = try WakeEvent()
        came.wake()
        let parting = HelperProgram.Parting(
            within: .seconds(300), came: came, isFirst: { _ in false }, end: { _ in })
        let program = try HelperProgram(
            "/bin/sh", ["-c", "while read line; do :; done; echo bye; exec sleep 1000"],
            environment: ["PATH=/usr/bin:/bin"], isSpokenTo: true, parting: parting)
        #expect(try line(of: program, evenIfLate: true, deadline: nil) == "bye")
        // Where it may not part, it is ended.
        let other = try HelperProgram(
            "/bin/sh", ["-c", "exec sleep 1000"], environment: ["PATH=/usr/bin:/bin"], isSpokenTo: true,
            parting: parting)
        let failure = #expect(throws: SystemFailure.self) { try other.finish(deadline: nil) }
        #expect(failure?.errno == .interrupted)
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
