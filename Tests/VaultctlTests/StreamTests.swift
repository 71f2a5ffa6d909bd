import Glibc
import TestLanes
import Testing

/// Standard streams that are closed, full, or whose reader went away.
@Suite(.tags(.programs), .from(.usual)) struct StreamTests {
    @Test func aFullOrClosedOutputIsAFailure() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", input: "fake")
        for command in [
            ["retrieve", "k"], ["retrieve", "k", "--json"], ["list"], ["info", "k"], ["status"], ["verify"],
            ["--help"], ["--version"], ["store", "k2", "--json"],
        ] {
            for output in [Child.Output.path("/dev/full"), .closed] {
                let outcome = try Child.run(
                    command.map { Array($0.utf8) }, environment: sandbox.environment, output: output)
                expectOneLine(outcome, status: 1)
            }
        }
        // The changes were made, although their output could not be written.
        #expect(try sandbox.run("list").text == "k\nk2\n")
        #expect(try sandbox.run("retrieve", "k").text == "fake")
    }

    /// With descriptor 1 closed, the vault would become standard output.
    @Test func aClosedOutputNeverBecomesTheVault() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", input: "fake")
        _ = try sandbox.run("retrieve", "k", output: .closed)
        _ = try sandbox.shell("\"$V\" list <&- >&- 2>&-")
        _ = try sandbox.shell("\"$V\" retrieve absent <&- >&- 2>&-")
        #expect(try sandbox.run("verify").status == 0)
        #expect(try sandbox.run("retrieve", "k").text == "fake")
    }

    @Test func aReaderThatWentAwayEndsUsSilently() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", bytes: [UInt8](repeating: 0x61, count: 1 << 20))
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        close(ends[0])
        let outcome = try sandbox.run("retrieve", "k", output: .descriptor(ends[1]))
        close(ends[1])
        #expect(outcome.status == 128 + SIGPIPE)
        #expect(outcome.error.isEmpty)
        // The same holds when the parent ignores the signal, as many programs do.
        let ignoring = try sandbox.shell("trap '' PIPE; { \"$V\" retrieve k; echo $? >&2; } | true")
        #expect(ignoring.error == "141\n")
        #expect(try sandbox.run("verify").status == 0)
    }

    /// The kernel would end the process in the middle of a write.
    @Test func aLimitOnFileSizesIsAFailureAndLosesNothing() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", input: "fake")
        let limited = try sandbox.shell(
            "ulimit -f 64; head -c 600000 /dev/zero | \"$V\" store k --binary; exit \"${PIPESTATUS[1]}\"")
        expectOneLine(limited, status: 1)
        #expect(
            limited.error.contains("no space left") && limited.error.contains("ulimit -f"), "\(limited.error)"
        )
        // Below the vault's present size, the store certainly did not happen.
        for blocks in [8, 16] {
            let small = try sandbox.shell("ulimit -f \(blocks); printf other | \"$V\" store k")
            expectOneLine(small, status: 1)
            #expect(small.error.contains("ulimit -f"), "\(blocks): \(small.error)")
        }
        #expect(try sandbox.run("retrieve", "k").text == "fake")
        #expect(try sandbox.run("verify").status == 0)
    }

    @Test func aClosedInputIsNoSecret() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", input: "fake")
        expectOneLine(try sandbox.run("store", "k", stdin: .closed), status: 1)
        expectOneLine(try sandbox.run("store", "k", stdin: .path("/tmp")), status: 1)
        expectOneLine(
            try sandbox.run("store", "k", "--passphrase-fd", "0", stdin: .closed), status: 1)
        #expect(try sandbox.run("retrieve", "k").text == "fake")
    }

    @Test func noCoreFileAndNoDumps() throws {
        let sandbox = try Sandbox.withVault()
        try #require(mkfifo("\(sandbox.home)/fifo", 0o600) == 0)
        // While the program waits for input, core dumps and inspection are off.
        let outcome = try sandbox.shell(
            """
            ulimit -c unlimited 2>/dev/null
            "$V" store k --timeout 300 0<>"$HOME/fifo" & child=$!
            until grep -q 'Max core file size *0 *0' /proc/$child/limits; do kill -0 $child || exit; done
            kill $child; wait $child; echo $?
            """)
        #expect(outcome.text == "143\n", "\(outcome.text) \(outcome.error)")
    }
}
