import Testing
import TokenVault

/// The vault file ends early.
@Suite struct TruncationTests {
    /// Every length from `start` to the end of the log and a little behind; the zeros then differ by nothing
    /// but their number.
    private func lengths(of vault: TamperedVault, from start: Int = 0) -> [Int] {
        let close = Array(start..<min(vault.end + 1_024, vault.file.count))
        let far = stride(from: vault.end + 1_024, to: vault.file.count, by: 1_031)
        return close + far
    }

    private func cut(_ length: Int, _ contents: inout DiskContents) {
        let bytes = contents.directories[0][SimulatedVault.name] ?? []
        contents.directories[0][SimulatedVault.name] = bytes.bytes(in: 0..<length)
    }

    @Test func withAnAnchorNothingIsLostUnseen() async throws {
        let vault = try TamperedVault.make()
        let end = vault.end
        let wrong = await vault.unaccepted(lengths(of: vault), apply: cut) { length, verdict in
            switch verdict {
            case .refused(.corrupt), .refused(.rolledBack): length < end
            // A file of a few bytes has no recognizable format.
            case .refused(.notAVault): length < 8_192
            case .unnoticed, .reported: length >= end
            default: false
            }
        }
        #expect(wrong == [])
    }

    @Test func withoutAnAnchorOnlyWholeCommitsCanGo() async throws {
        let vault = try TamperedVault.make().withoutAnchor()
        let end = vault.end
        // Before the log's first frame, the anchor plays no role, and the other test covers those lengths.
        let wrong = await vault.unaccepted(lengths(of: vault, from: 16_000), apply: cut) { length, verdict in
            switch verdict {
            case .refused(.corrupt): length < end
            case .refused(.notAVault): length < 8_192
            // A complete older state of the log: this device has no newer record.
            case .older: length < end && length >= 16_896
            case .unnoticed, .reported: length >= end
            default: false
            }
        }
        #expect(wrong == [])
    }
}
