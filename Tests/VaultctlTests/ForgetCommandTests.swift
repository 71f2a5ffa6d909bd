import TestLanes
import Testing

/// A vault whose file is gone: none is made in its place before it is put back or forgotten.
@Suite(.tags(.programs), .from(.usual)) struct ForgetCommandTests {
    private let sandbox: Sandbox
    private var state: String { "\(sandbox.home)/.local/state/tokenvault" }

    init() throws {
        sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "k", input: "fake")
        _ = try sandbox.shell("mv '\(sandbox.vault)' away")
    }

    private func isRefused(_ arguments: [String] = ["init"]) throws {
        let refused = try sandbox.run(arguments: arguments)
        expectOneLine(refused, status: 8)
        #expect(refused.error.contains("the vault file is gone"), "\(refused.error)")
        #expect(refused.error.contains("\"vaultctl restore\""), "\(refused.error)")
        #expect(refused.error.contains("\"vaultctl destroy --forget\""), "\(refused.error)")
    }

    @Test func noneIsMadeInItsPlaceBeforeItIsForgotten() throws {
        let before = try sandbox.shell("ls -A '\(state)'").text
        try isRefused()
        // The refused commands created nothing, not even a key file.
        try isRefused(["init", "--key-file", "\(sandbox.home)/other.key"])
        #expect(try sandbox.shell("ls -A '\(state)'").text == before)
        #expect(try sandbox.shell("test -e other.key").status == 1)
        let asked = try sandbox.run("destroy", "--forget")
        expectOneLine(asked, status: 5)
        try isRefused(["destroy", "--yes"])
        let forgotten = try sandbox.run("destroy", "--forget", "--yes")
        #expect(forgotten.status == 0 && forgotten.error.isEmpty, "\(forgotten.error)")
        #expect(try sandbox.shell("ls -A '\(state)'").text.isEmpty)
        expectOneLine(try sandbox.run("destroy", "--forget", "--yes"), status: 8)
        #expect(try sandbox.run("status").text.contains("absent"))
        #expect(try sandbox.run("init").status == 0)
        #expect(try sandbox.run("store", "k", input: "new").status == 0)
    }

    @Test func withItsDirectoryToo() throws {
        _ = try sandbox.shell("rm -r .local/share")
        try isRefused()
        #expect(try sandbox.shell("test -e .local/share").status == 1)
        _ = try sandbox.shell("mkdir -p real && ln -s real link")
        #expect(try sandbox.run("init", "--vault", "\(sandbox.home)/link/sub/a.vault").status == 0)
        _ = try sandbox.shell("rm -r real/sub")
        try isRefused(["init", "--vault", "\(sandbox.home)/link/sub/a.vault"])
        let inHome = try sandbox.shell("\"$V\" init --vault real/../link/sub/a.vault")
        #expect(inHome.status == 8 && inHome.error.contains("gone"), "\(inHome.error)")
    }

    /// A vault of a colleague that the same key file opens is bound over the vault.
    @Test(.enabled(if: Child.canMount)) func anotherVaultIsNotReadThroughAMount() throws {
        _ = try sandbox.shell(
            """
            mv away '\(sandbox.vault)'
            "$V" init --vault other.vault
            printf fake-other | "$V" store k --vault other.vault
            """)
        let mounted =
            #"unshare -rm sh -c 'mount --bind other.vault "$0" && exec "$V" "$@"' '\#(sandbox.vault)' "#
        let read = try sandbox.shell(mounted + "retrieve k")
        expectOneLine(read, status: 7)
        #expect(read.error.contains("vaultctl destroy --forget"), "\(read.error)")
        expectOneLine(try sandbox.shell("printf fake | " + mounted + "store next"), status: 7)
        expectOneLine(try sandbox.run("retrieve", "next"), status: 3)
        let adopted = try sandbox.shell("cp -p other.vault '\(sandbox.vault)'; \"$V\" adopt --yes")
        #expect(adopted.status == 0, "\(adopted.error)")
        #expect(try sandbox.run("retrieve", "k").text == "fake-other")
    }

    @Test func aVaultThatIsThereIsNotForgotten() throws {
        _ = try sandbox.shell("mv away '\(sandbox.vault)'")
        let before = try sandbox.shell("ls -A '\(state)'").text
        let refused = try sandbox.run("destroy", "--forget", "--yes")
        expectOneLine(refused, status: 9)
        #expect(try sandbox.shell("ls -A '\(state)'").text == before)
        #expect(try sandbox.run("retrieve", "k").text == "fake")
    }

    @Test func aVaultThatWasMovedIsKnownWhereItIs() throws {
        let away = "\(sandbox.home)/away"
        #expect(try sandbox.run("retrieve", "k", "--vault", away).text == "fake")
        #expect(try sandbox.run("init").status == 0)
        #expect(try sandbox.run("retrieve", "k", "--vault", away).text == "fake")
    }

    /// Its keys were gone by the time that it turned out to stay.
    @Test(.enabled(if: Child.canMount)) func aFileThatIsMountedByItselfIsDestroyedWithItsKeysOrNot() throws {
        _ = try sandbox.shell("mv away '\(sandbox.vault)'")
        let refused = try sandbox.shell(
            """
            unshare -rm sh -c 'mount --bind "$0" "$0" && exec "$V" destroy --yes' '\(sandbox.vault)'
            """)
        #expect(refused.status == 1 && refused.error.contains("unmount the file"), "\(refused.error)")
        #expect(try sandbox.run("retrieve", "k").text == "fake")
    }

    @Test func aPersonIsAsked() throws {
        let terminal = try PseudoTerminal(sandbox, ["destroy", "--forget"])
        try terminal.expect("Forget the vault that was at \(sandbox.vault)")
        try terminal.type("no\r")
        #expect(try terminal.end() == 5)
        try isRefused()
    }
}
