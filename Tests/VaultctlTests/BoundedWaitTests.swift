import Glibc
import TestLanes
import Testing

/// What `--timeout` bounds beside locks: pipes that no process writes to, and pipes that no process reads.
@Suite(.tags(.programs), .from(.usual)) struct BoundedWaitTests {
    /// The program, ended with status 124 if it does not end by itself.
    private static func bounded(
        _ sandbox: Sandbox, _ arguments: [String], output: Child.Output = .captured
    ) throws -> Child.Outcome {
        try Child.run(
            program: "/usr/bin/timeout", (["300", Child.program] + arguments).map { Array($0.utf8) },
            environment: sandbox.environment, output: output)
    }

    @Test func anImportWaitsForItsWriterNoLongerThanTold() throws {
        let sandbox = try Sandbox.withVault()
        let words = try sandbox.file("words", "fake words\n")
        let fifo = "\(sandbox.home)/fifo"
        try #require(mkfifo(fifo, 0o600) == 0)
        expectOneLine(
            try Self.bounded(
                sandbox, ["import", fifo, "--export-passphrase-file", words, "--timeout", "0.2"]),
            status: 10)
        // A writer that opens the pipe and never writes, and the same on standard input.
        for script in [
            "exec 3<>fifo; timeout 300 \"$V\" import fifo --export-passphrase-file words --timeout 0.2",
            "timeout 300 \"$V\" import - --export-passphrase-file words --timeout 0.2 0<>fifo",
            "exec 3<>fifo; printf TVEXPORT >&3; timeout 300 \"$V\" import - --export-passphrase-file words "
                + "--timeout 0.2 <fifo",
        ] {
            let waited = try sandbox.shell(script)
            expectOneLine(waited, status: 10)
            #expect(waited.error.contains("the export is not complete"), "\(waited.error)")
        }
    }

    /// The author of an export sets what deriving its key costs.
    @Test func aDearExportIsNotBegun() throws {
        let sandbox = try Sandbox.withVault()
        let words = try sandbox.file("words", "fake words\n")
        let out = "\(sandbox.home)/out"
        #expect(try sandbox.run("export", out, "--export-passphrase-file", words).status == 0)
        // Twelve passes over 2 GiB of memory.
        _ = try sandbox.shell(
            #"printf '\x0c\x00\x00\x00\x00\x00\x00\x80\x00\x00\x00\x00' | dd of=out bs=1 seek=12 conv=notrunc"#
        )
        let refused = try Self.bounded(
            sandbox, ["import", out, "--export-passphrase-file", words, "--timeout", "3"])
        expectOneLine(refused, status: 10)
        #expect(refused.error.contains("deriving the passphrase's key takes at least"), "\(refused.error)")
    }

    @Test func aWriterThatComesLateIsWaitedFor() throws {
        let sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", "--policy", "when-unlocked", input: "fake")
        _ = try sandbox.file("words", "fake words\n")
        let moved = try sandbox.shell(
            """
            "$V" export tokens --export-passphrase-file words && mkfifo fifo || exit
            timeout 300 "$V" import fifo --export-passphrase-file words --timeout 300 --json & child=$!
            cat tokens >fifo
            wait $child
            """)
        #expect(moved.status == 0, "\(moved.error)")
        #expect(moved.text == #"{"added":0,"replaced":0,"skipped":0,"unchanged":1}"# + "\n")
    }

    @Test func anOutputThatNobodyReadsIsWaitedForNoLongerThanTold() throws {
        let sandbox = try Sandbox.withVault()
        let words = try sandbox.file("words", "fake words\n")
        let big = [UInt8](repeating: 0x61, count: 1 << 20)
        _ = try sandbox.run("store", "big", "--policy", "when-unlocked", bytes: big)
        let name = String(repeating: "k", count: 1_000)
        let lines = (1...400).map { "{\"key\":\"\(name)\($0)\",\"value\":\"fake\"}\n" }.joined()
        let made = try sandbox.run("import", "--format", "ndjson", "-", input: lines)
        #expect(made.status == 0, "\(made.error)")
        for (arguments, timeout) in [
            (["retrieve", "big"], "0.5"), (["retrieve", "big", "--json"], "0.5"), (["list"], "0.5"),
            // The derivation for the export takes most of a second, and does not begin with less time.
            (["export", "-", "--export-passphrase-file", words], "4"),
        ] {
            var pipe: [Int32] = [0, 0]
            var sockets: [Int32] = [0, 0]
            try #require(Glibc.pipe(&pipe) == 0)
            try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &sockets) == 0)
            for ends in [pipe, sockets] {
                for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
                let stuck = try Self.bounded(
                    sandbox, arguments + ["--timeout", timeout], output: .descriptor(ends[1]))
                expectOneLine(stuck, status: 10)
                // On a busy machine, the derivation alone may take the whole time.
                #expect(
                    stuck.error.contains("standard output") || arguments.first == "export",
                    "\(arguments): \(stuck.error)")
                // The descriptor is shared with the parent, so its mode must not change.
                #expect(fcntl(ends[1], F_GETFL) & O_NONBLOCK == 0)
                for end in ends { close(end) }
            }
        }
        // An error message does not wait for a reader either.
        let both = try sandbox.shell(
            "mkfifo fifo; exec 3<>fifo; timeout 300 \"$V\" retrieve big --timeout 0.5 >&3 2>&3; echo $?")
        #expect(both.text == "10\n")
    }

    @Test func aSlowReaderGetsEverything() throws {
        let sandbox = try Sandbox.withVault()
        let big = [UInt8](repeating: 0x61, count: 1 << 20)
        _ = try sandbox.run("store", "big", bytes: big)
        let read = try sandbox.shell(
            """
            set -o pipefail; "$V" retrieve big --timeout 300 | { dd bs=1 count=9 status=none; cat; }
            """)
        #expect(read.status == 0 && read.output == big, "\(read.error)")
        // A reader that closes the pipe ends the program, as without a time limit.
        let ended = try sandbox.shell("{ \"$V\" retrieve big --timeout 300; echo $? >&2; } | true")
        #expect(ended.error == "141\n")
    }

    /// A key file that opens nothing would be taken for one that does.
    @Test func aSlotThatWasNotAddedLeavesNoKeyFile() throws {
        let sandbox = try Sandbox.withVault()
        let vault = open(sandbox.vault, O_RDWR | O_CLOEXEC)
        try #require(vault >= 0)
        defer { close(vault) }
        // Another process holds a read lock, so that no process can write.
        var lock = flock()
        lock.l_type = Int16(F_RDLCK)
        try #require(fcntl(vault, F_SETLK, &lock) == 0)
        let theirs = try sandbox.file("theirs", "fake key of somebody, long enough to be one\n")
        for path in ["\(sandbox.home)/new", theirs] {
            let waited = try Self.bounded(sandbox, ["slot", "add", "key-file", path, "--timeout", "0.3"])
            expectOneLine(waited, status: 10)
        }
        #expect(access("\(sandbox.home)/new", F_OK) != 0)
        #expect(access(theirs, F_OK) == 0)
        lock.l_type = Int16(F_UNLCK)
        try #require(fcntl(vault, F_SETLK, &lock) == 0)
        #expect(try sandbox.run("slot", "add", "key-file", "\(sandbox.home)/new").status == 0)
    }
}
