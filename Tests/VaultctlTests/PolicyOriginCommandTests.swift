import TestLanes
import Testing

/// Items that a session without the root key stored, on the command line.
@Suite(.tags(.programs), .from(.usual)) struct PolicyOriginCommandTests {
    private let sandbox: Sandbox

    /// A vault with a key file that opens everything, and one, `limited`, that opens what may be read after first unlock.
    init() throws {
        sandbox = try Sandbox.withVault()
        _ = try sandbox.run("slot", "add", "recovery")
        let added = try sandbox.run("slot", "add", "key-file", "\(sandbox.home)/limited")
        #expect(added.status == 0, "\(added.error)")
        let bait = try sandbox.shell(
            """
            printf bait | "$V" store important --policy after-first-unlock --key-file limited
            """)
        #expect(bait.status == 0, "\(bait.error)")
    }

    @Test func theOwnerIsToldOfAPolicyThatIsNotKept() throws {
        let info = try sandbox.run("info", "important")
        #expect(
            info.text.contains(
                "policy:      after-first-unlock (chosen without the root key)\n"),
            "\(info.text)")
        let marked = #""policy":"after-first-unlock","policyOrigin":"limited-session""#
        #expect(try sandbox.run("info", "important", "--json").text.contains(marked))
        #expect(try sandbox.run("list", "--json").text.contains(marked))
        let stored = try sandbox.shell(#"printf secret | "$V" store important"#)
        #expect(
            stored.status == 0
                && stored.error
                    == "vaultctl: note: the item's policy, after-first-unlock, was chosen without the root key; "
                    + "the new value has the vault's default, when-unlocked-this-device-only. "
                    + "Choose another with --policy\n",
            "\(stored.error)")
        let now = try sandbox.run("info", "important", "--json").text
        #expect(
            now.contains(#""policy":"when-unlocked-this-device-only""#) && !now.contains("policyOrigin"),
            "\(now)")
        let read = try sandbox.shell(#""$V" retrieve important --key-file limited"#)
        #expect(read.status != 0 && !read.text.contains("secret"))
    }

    /// As it is through a locked agent.
    @Test func whoCannotLeaveThePolicyIsToldOfIt() throws {
        let stored = try sandbox.shell(#"printf newer | "$V" store important --key-file limited"#)
        #expect(
            stored.status == 0 && stored.error.contains("note: the item keeps the policy after-first-unlock"),
            "\(stored.error)")
        let chosen = try sandbox.shell(
            #"printf newer | "$V" store important --policy after-first-unlock --key-file limited"#)
        #expect(chosen.status == 0 && chosen.error.isEmpty, "\(chosen.error)")
    }

    @Test func whatTheOwnerChoseIsKeptWithoutANote() throws {
        let stored = try sandbox.shell(
            """
            printf secret | "$V" store important --policy after-first-unlock
            printf another | "$V" store important --key-file limited
            printf third | "$V" store important
            """)
        #expect(stored.status == 0 && stored.error.isEmpty, "\(stored.error)")
        let now = try sandbox.run("info", "important", "--json").text
        #expect(now.contains(#""policy":"after-first-unlock""#) && !now.contains("policyOrigin"), "\(now)")
    }

    /// A merge seals items again, and vouches for no policy that it cannot prove.
    @Test func aMergeKeepsWhoChoseWhat() throws {
        let parted = try sandbox.shell(
            """
            cp -p '\(sandbox.vault)' copy
            other() { "$V" "$@" --vault copy --state-dir other; }
            printf one | other store chosen --policy after-first-unlock
            printf two | other store bait --policy after-first-unlock --key-file limited
            printf three | "$V" store mine --policy after-first-unlock
            "$V" merge copy
            """)
        #expect(parted.status == 0, "\(parted.error)")
        func isMarked(_ key: String) throws -> Bool {
            let info = try sandbox.run("info", key, "--json")
            #expect(info.status == 0, "\(info.error)")
            return info.text.contains("policyOrigin")
        }
        #expect(try isMarked("bait") && isMarked("important"))
        #expect(try !isMarked("chosen") && !isMarked("mine"))
        let stored = try sandbox.shell(
            #"for key in bait chosen; do printf secret | "$V" store "$key"; done"#)
        #expect(stored.error.split(separator: "\n").count == 1, "\(stored.error)")
        #expect(try sandbox.run("info", "chosen").text.contains("policy:      after-first-unlock\n"))
    }

    @Test func linesOfJSONTellIt() throws {
        let (line, sign) = (#"{"key":"k","value":"v","policy":"after-first-unlock","policyOrigin":""#, #""}"#)
        let wrong = try sandbox.shell(
            #"printf '%s\n' '\#(line)fake-origin\#(sign)' | "$V" import --format ndjson -"#)
        expectOneLine(wrong, status: 64)
        #expect(wrong.error.contains("line 1 has an unknown policyOrigin"), "\(wrong.error)")
        let right = try sandbox.shell(
            #"printf '%s\n' '\#(line)limited-session\#(sign)' | "$V" import --format ndjson -"#)
        #expect(right.status == 0, "\(right.error)")
        #expect(try sandbox.run("info", "k", "--json").text.contains(#""policyOrigin":"limited-session""#))
    }
}
