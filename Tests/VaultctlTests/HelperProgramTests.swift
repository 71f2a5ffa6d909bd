import ProgramSupport
import SystemPackage
import TestLanes
import Testing
import TokenVaultPlatform

/// What is read of a program that is asked something, and until when.
@Suite(.tags(.programs), .from(.usual)) struct HelperProgramTests {
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
        // The first read waits for its line, and the second line is then in the pipe.
        let program = try program("printf 'one\\ntwo\\n'; read line; echo three; read line")
        #expect(try line(of: program, evenIfLate: true, deadline: nil) == "one")
        #expect(throws: SystemFailure.self) { try line(of: program, evenIfLate: false) }
        #expect(try line(of: program, evenIfLate: true) == "two")
        let failure = #expect(throws: SystemFailure.self) { try line(of: program, evenIfLate: true) }
        #expect(failure?.errno == .timedOut)
        try program.write("\n", deadline: nil)
        #expect(try line(of: program, evenIfLate: true, deadline: nil) == "three")
    }

    private func program(_ script: String, _ parting: HelperProgram.ShutdownPolicy) throws -> HelperProgram {
        try HelperProgram(
            "/bin/sh", ["-c", script], environment: ["PATH=/usr/bin:/bin"], isSpokenTo: true, parting: parting
        )
    }

    /// After a notice of the end, the program starts only helpers whose work is part of ending. The notice
    /// does not keep such a helper from its work.
    @Test func aNoticeFromBeforeTheStartCounts() throws {
        let notice = try EndingNotice()
        notice.tell()
        let failure = #expect(throws: SystemFailure.self) {
            try program("echo one", HelperProgram.ShutdownPolicy(notice, within: .seconds(8)))
        }
        #expect(failure?.errno == .interrupted)
        let late = try program(
            "read line; echo one; read line || echo two",
            HelperProgram.ShutdownPolicy(notice, within: .zero, comesAfterwards: true))
        try late.write("\n", deadline: nil)
        #expect(try line(of: late, evenIfLate: true, deadline: nil) == "one")
    }

    /// What one says at the end of its input is read, and what another one says that knows nothing of an end.
    @Test(arguments: [true, false])
    func aNoticeThatNobodyWaitedForCounts(_ isTold: Bool) throws {
        let notice = try EndingNotice()
        let asked = try program(
            isTold ? "read line; read line || echo two" : "read line; echo two; read line || :",
            HelperProgram.ShutdownPolicy(notice, within: .seconds(100), isTold: isTold))
        try asked.write("\n", deadline: nil)
        notice.tell()
        #expect(try line(of: asked, evenIfLate: true, deadline: nil) == "two")
        #expect(try asked.finish(deadline: nil) == 0)
    }

    /// The program does not wait any longer for a helper that says nothing within its time.
    @Test func aNoticeBoundsTheWaiting() throws {
        let notice = try EndingNotice()
        let asked = try program(
            "exec sleep 1000", HelperProgram.ShutdownPolicy(notice, within: .zero, isTold: false))
        notice.tell()
        let failure = #expect(throws: SystemFailure.self) {
            try line(of: asked, evenIfLate: true, deadline: nil)
        }
        #expect(failure?.errno == .timedOut)
    }

    /// Whose end is waited for, and nothing more of it, is ended.
    @Test func aNoticeEndsOneThatHasNothingToSayAnyMore() throws {
        let notice = try EndingNotice()
        let asked = try program(
            "exec sleep 1000", HelperProgram.ShutdownPolicy(notice, within: .seconds(300)))
        notice.tell()
        let failure = #expect(throws: SystemFailure.self) { try asked.finish(deadline: nil) }
        #expect(failure?.errno == .interrupted)
    }

    /// An immediate end leaves no helper behind, and no helper is started afterwards.
    @Test func allAreEndedAtOnce() throws {
        let notice = try EndingNotice()
        let parting = HelperProgram.ShutdownPolicy(notice, within: .seconds(100), comesAfterwards: true)
        let programs = try (0..<3).map { _ in try program("sleep 1000", parting) }
        notice.endAll()
        for program in programs {
            #expect(try line(of: program, evenIfLate: true, deadline: nil) == nil)
            #expect(try program.finish(deadline: nil) == 128 + 9)
        }
        #expect(throws: SystemFailure.self) { try program("echo one", parting) }
    }
}
