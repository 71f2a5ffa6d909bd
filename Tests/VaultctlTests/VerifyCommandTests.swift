import TestLanes
import Testing

/// `verify` of what does not open: it says where all the same, and what to do, in the report that it always gives.
@Suite(.tags(.programs), .from(.usual)) struct VerifyCommandTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox.withVault()
        _ = try sandbox.run("store", "a", input: String(repeating: "fake a ", count: 100))
        _ = try sandbox.shell("cp -p '\(sandbox.vault)' old")
        _ = try sandbox.run("store", "b", input: String(repeating: "fake b ", count: 100))
    }

    /// Overwrites eight bytes, `skipping` after the start of the frame at `index` of the file `path`.
    private func damage(_ path: String, frame index: Int, skipping: Int) throws {
        let done = try sandbox.shell(
            """
            offset=$(LC_ALL=C grep -obUaP 'TVF1' '\(path)' | sed -n \(index)p | cut -d: -f1)
            printf 'XXXXXXXX' | dd of='\(path)' bs=1 seek=$((offset + \(skipping))) conv=notrunc status=none
            """)
        try #require(done.status == 0, "\(done.error)")
    }

    private func expectReport(_ found: Child.Outcome, _ parts: String...) {
        #expect(found.status == 7)
        for part in parts { #expect(found.text.contains(part), "\(part): \(found.text)") }
        #expect(found.error.split(separator: "\n").count == 1, "\(found.error)")
        #expect(found.error.hasPrefix("vaultctl: the vault is "), "\(found.error)")
        #expect(!found.error.contains("vaultctl verify"), "\(found.error)")
    }

    @Test func aKeybagThatNothingOpens() throws {
        _ = try sandbox.shell(
            """
            for offset in 100 8292; do
                printf 'XXXXXXXX' | dd of='\(sandbox.vault)' bs=1 seek=$offset conv=notrunc status=none
            done
            """)
        expectOneLine(try sandbox.run("retrieve", "a"), status: 7)
        let json = try sandbox.run("verify", "--json")
        expectReport(json, #""clean":false"#, #""problems":[{"offset":0,"description":"both copies"#)
        #expect(json.error.contains("\"vaultctl restore\""), "\(json.error)")
        expectReport(try sandbox.run("verify"), "byte 0: both copies of the keybag are damaged")
    }

    /// The undamaged copy is in use. The next unlock replaces the damaged one.
    @Test func oneCopyOfTheKeybagIsMendedByUse() throws {
        _ = try sandbox.shell(
            "printf 'XXXXXXXX' | dd of='\(sandbox.vault)' bs=1 seek=8292 conv=notrunc status=none")
        let found = try sandbox.run("verify")
        #expect(found.status == 7 && found.error.contains("repairs it"), "\(found.error)")
        #expect(try sandbox.run("store", "c", input: "fake").status == 0)
        #expect(try sandbox.run("verify").status == 0)
    }

    /// All that follows the first frame is cut off.
    @Test func nothingIsLeftToSalvage() throws {
        _ = try sandbox.shell("truncate -s 17232 '\(sandbox.vault)'")
        let found = try sandbox.run("salvage", "\(sandbox.home)/saved.vault")
        #expect(found.status == 7 && found.error.contains("nothing could be saved"), "\(found.error)")
        #expect(found.error.contains("restore a backup with \"vaultctl restore\""), "\(found.error)")
    }

    @Test func aRecordThatKeepsTheVaultShut() throws {
        try damage(sandbox.vault, frame: 2, skipping: 30)
        expectOneLine(try sandbox.run("retrieve", "b"), status: 7)
        let json = try sandbox.run("verify", "--json")
        expectReport(json, #""clean":false,"olderThanSeen":false"#, #""problems":[{"offset":1"#)
        #expect(json.error.contains("\"vaultctl salvage\""), "\(json.error)")
        // The key file is a pipe, which can be read only once.
        _ = try sandbox.shell(
            "mkfifo pipe; cat vault.key >pipe & \"$V\" verify --key-file pipe >out; echo $? >>out")
        #expect(try sandbox.shell("cat out").text.contains("byte 1"))
    }

    /// Another vault is at the path, whole: that is no clean vault.
    @Test func anotherVaultInItsPlace() throws {
        let made = try sandbox.shell(
            """
            "$V" init --vault "$PWD/second.vault" --key-file vault.key
            mv '\(sandbox.vault)' kept && mv second.vault '\(sandbox.vault)'
            """)
        try #require(made.status == 0, "\(made.error)")
        let found = try sandbox.run("verify")
        expectOneLine(found, status: 7)
        #expect(found.error.contains("another vault"), "\(found.error)")
    }

    @Test func anOldCopyThatIsDamagedToo() throws {
        _ = try sandbox.shell("cp -p old '\(sandbox.vault)'")
        let old = try sandbox.run("verify", "--json")
        expectReport(old, #""clean":false,"olderThanSeen":true"#, #""problems":[]"#)
        #expect(old.error.contains("older than the one this device has seen"), "\(old.error)")
        expectReport(try sandbox.run("verify"), "older than the vault that this device has seen\n")
        try damage(sandbox.vault, frame: 2, skipping: 416)
        let both = try sandbox.run("verify", "--json")
        expectReport(both, #""olderThanSeen":true"#, #""problems":[{"offset":1"#)
        #expect(
            both.error.contains("older than the one this device has seen, and damaged in one place"),
            "\(both.error)")
        #expect(both.error.contains("\"vaultctl salvage\""), "\(both.error)")
    }

    @Test func aForkIsNoOlderVault() throws {
        _ = try sandbox.shell(
            """
            cp -p '\(sandbox.vault)' fork
            printf fake-important | "$V" store important
            for key in x y; do
                printf fake | "$V" store "$key" --policy when-unlocked --vault fork --state-dir elsewhere
            done
            cp -p fork '\(sandbox.vault)'
            """)
        let refused = try sandbox.run("retrieve", "important")
        expectOneLine(refused, status: 7)
        #expect(refused.error.contains("lacks changes that this device has seen"), "\(refused.error)")
        #expect(refused.error.contains("\"vaultctl merge FILE\""), "\(refused.error)")
        let json = try sandbox.run("verify", "--json")
        expectReport(json, #""clean":false,"olderThanSeen":false,"forked":true"#, #""problems":[]"#)
        #expect(json.error.contains("\"vaultctl merge FILE\""), "\(json.error)")
        expectReport(try sandbox.run("verify"), "without changes that this device has seen\n")
    }

    @Test func whatOpensNothingIsNoDamage() throws {
        let wrong = try sandbox.file("wrong.key", String(repeating: "x", count: 40))
        expectOneLine(try sandbox.run("verify", "--key-file", wrong), status: 5)
        expectOneLine(try sandbox.run("verify", without: "VAULTCTL_KEY_FILE"), status: 4)
    }
}
