import Foundation
import ProgramSupport
import SystemPackage
import TestLanes
import Testing
import TokenVaultPlatform

@Suite(.tags(.programs), .from(.usual)) struct BackgroundProgramTests {
    /// A program that says nothing is not left running unseen.
    @Test func whatIsNotReadyInTimeIsEnded() throws {
        let mark = "not ready \(UUID().uuidString)"
        do throws(SystemFailure) {
            _ = try BackgroundProgram(
                "/bin/sh", ["-c", "sleep 3600; :", mark], environment: [],
                within: .milliseconds(100))
            Issue.record("the program counts as ready without a report")
        } catch {
            #expect(error.errno == .timedOut)
        }
        let running = try FileManager.default.contentsOfDirectory(atPath: "/proc").filter { process in
            guard let words = FileManager.default.contents(atPath: "/proc/\(process)/cmdline") else {
                return false
            }
            return words.range(of: Data(mark.utf8)) != nil
        }
        #expect(running.isEmpty)
    }

    /// What it said is kept, and its exit status.
    @Test func oneThatEndsIsNotReady() throws {
        let program = try BackgroundProgram(
            "/bin/sh", ["-c", "echo why >&2; exit 7"], environment: [], errors: .kept,
            within: .seconds(3_600))
        #expect(!program.isReady && program.errors == "why\n")
        #expect(program.wait() == 7)
    }
}
