import TestLanes
import Testing
import TokenVault

@testable import vaultctl

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// What a terminal shows of texts that other programs chose.
@Suite(.tags(.programs), .from(.usual)) struct TableTests {
    @Test func wideAndCombiningCharactersTakeTheirColumns() {
        #expect(DisplayWidth.columns(of: "abc") == 3)
        #expect(DisplayWidth.columns(of: "日本") == 4 && DisplayWidth.columns(of: "ﾊ") == 1)
        #expect(DisplayWidth.columns(of: "e\u{301}") == 1 && DisplayWidth.columns(of: "🔑") == 2)
        #expect(DisplayWidth.cut("日本語", to: 4) == "日…" && DisplayWidth.cut("日本語", to: 6) == "日本語")
        #expect(DisplayWidth.cut("abcdef", to: 4) == "abc…")
        #expect(DisplayWidth.columns(of: DisplayWidth.padded("日本", to: 7)) == 7)
    }

    @Test func aLongKeyDoesNotPushTheOtherColumnsOutOfTheTerminal() throws {
        let rows = try lines(keys: [String(repeating: "k", count: 300), "日本", "short"], columns: 80)
        #expect(rows.allSatisfy { DisplayWidth.columns(of: $0) <= 80 }, "\(rows)")
        #expect(rows.dropFirst().allSatisfy { $0.contains("when-unlocked") })
        #expect(rows[1].contains("…") && rows[1].hasPrefix("kkk"))
        let places = rows.dropFirst().map { row in
            row.firstRange(of: "when-unlocked").map { DisplayWidth.columns(of: row[..<$0.lowerBound]) }
        }
        #expect(Set(places).count == 1, "\(rows)")
    }

    @Test func aRowHasNoCharactersThatATerminalObeys() throws {
        let rows = try lines(keys: ["a\u{1b}[31m\u{202e}\u{200b}\u{e0041}b"], columns: nil)
        #expect(rows[1].hasPrefix(#"a\u{1b}[31m???b  "#), "\(rows)")
    }

    private func lines(keys: [String], columns: Int?) throws -> [String] {
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        return ItemTable(
            keys.map {
                TokenMetadata(
                    key: TokenKey($0), service: "s", policy: .whenUnlocked, created: now, modified: now,
                    generation: Generation(rawValue: 1))
            }, showsServices: false, now: now
        ).lines(columns: columns)
    }
}

/// Paths that the shell was to expand, and did not.
@Suite(.tags(.programs), .from(.usual)) struct TildeTests {
    @Test(arguments: [
        ["status", "--vault=~/a.vault"], ["status", "--state-dir", "~/state"], ["list", "--key-file=~/key"],
        ["restore", "~/copy"], ["merge", "~/copy"], ["import", "~/file"],
        ["slot", "add", "key-file", "~/key"],
        ["list", "--passphrase-file", "~"], ["salvage", "~/saved"],
    ])
    func aLiteralTildeIsRefused(_ arguments: [String]) throws {
        let sandbox = try Sandbox.withVault()
        let refused = try sandbox.run(arguments: arguments)
        expectOneLine(refused, status: 64)
        #expect(refused.error.contains("$HOME"), "\(refused.error)")
        #expect(try sandbox.shell("ls -d '~' 2>&1").status != 0)
    }

    @Test func aVariableIsNamed() throws {
        let sandbox = try Sandbox.withVault()
        let refused = try sandbox.shell(#"VAULTCTL_VAULT='~/a.vault' "$V" status"#)
        expectOneLine(refused, status: 64)
        #expect(refused.error.contains("VAULTCTL_VAULT begins with ~"), "\(refused.error)")
    }
}
