import TestLanes
import Testing

/// `history`, `undo` and how many values a vault keeps.
@Suite(.tags(.programs), .from(.usual)) struct HistoryCommandTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox.withVault()
        let stored = try sandbox.shell(
            """
            printf one | "$V" store token --label first && printf two | "$V" store token && printf three | "$V" store token
            """)
        #expect(stored.status == 0, "\(stored.error)")
    }

    private func generations(_ options: String...) throws -> [String] {
        let listed = try sandbox.run(arguments: ["history", "token"] + options)
        #expect(listed.status == 0, "\(listed.error)")
        return listed.text.split(separator: "\n").map { String($0.prefix { $0 != "\t" }) }
    }

    @Test func aMistakeIsUndone() throws {
        let before = try generations()
        #expect(before.count == 3)
        let line = try sandbox.run("history", "token").text.split(separator: "\n")[0]
        #expect(line.split(separator: "\t").count == 3 && line.hasSuffix("Z\twhen-unlocked-this-device-only"))
        let undone = try sandbox.run("undo", "token")
        #expect(undone.status == 0 && undone.text.isEmpty && undone.error.isEmpty, "\(undone.error)")
        #expect(try sandbox.run("retrieve", "token").text == "two")
        #expect(try sandbox.run("undo", "token", "--to", before[2]).status == 0)
        #expect(try sandbox.run("retrieve", "token").text == "one")
        let json = try sandbox.run("history", "token", "--json").text
        #expect(json.hasPrefix(#"[{"service":"default","key":"token","policy":"#), "\(json)")
        #expect(!json.contains("value"))
    }

    @Test func compactionKeepsWhatItIsTold() throws {
        let kept = try sandbox.run("compact", "--keep-values", "1")
        #expect(kept.status == 0, "\(kept.error)")
        #expect(try generations().count == 2)
        #expect(try sandbox.run("status").text.contains("keeps:       1 replaced value of each item\n"))
        #expect(try sandbox.run("status", "--json").text.contains(#""keptValues":1"#))
        #expect(try sandbox.run("compact", "--keep-values", "0").status == 0)
        #expect(try generations().count == 1)
        #expect(try !sandbox.run("status").text.contains("keeps:"))
        let undone = try sandbox.run("undo", "token")
        #expect(
            undone.status == 3
                && undone.error.hasPrefix("vaultctl: the file does not have this earlier value"),
            "\(undone.error)")
        for number in ["-1", "101", "many"] {
            let refused = try sandbox.run("compact", "--keep-values=\(number)")
            #expect(refused.status == 64, "\(refused.error)")
        }
    }

    @Test func whatIsGoneOrLockedIsToldApart() throws {
        #expect(try sandbox.run("history", "nothing").status == 3)
        #expect(try sandbox.run("undo", "nothing").status == 3)
        #expect(try sandbox.run("undo", "token", "--to", "x").status == 64)
        let other = try sandbox.run("history", "token", "--backend", "memory")
        #expect(other.status == 64, "\(other.error)")
        let locked = try sandbox.shell(#"unset VAULTCTL_KEY_FILE; "$V" history token --no-input"#)
        #expect(locked.status == 4 && locked.text.isEmpty, "\(locked.error)")
        #expect(try sandbox.run("delete", "token").status == 0)
        #expect(try sandbox.run("history", "token").status == 3)
        #expect(try sandbox.run("undo", "token").status == 3)
    }
}
