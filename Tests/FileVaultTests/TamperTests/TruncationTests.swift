import Testing
import TokenVault

/// The vault file ends early.
@Suite struct TruncationTests {
    private func lengths(of vault: TamperedVault) -> [Int] {
        // Every length to the end of the log and a little behind; the zeros then differ by nothing but their number.
        let close = Array(0..<min(vault.end + 1_024, vault.file.count))
        let far = stride(from: close.count, to: vault.file.count, by: 257)
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
            // A file of a few bytes does not say what it was.
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
        let wrong = await vault.unaccepted(lengths(of: vault), apply: cut) { length, verdict in
            switch verdict {
            case .refused(.corrupt): length < end
            case .refused(.notAVault): length < 8_192
            // An older state of the log, all of it: nothing on this device knows better.
            case .older: length < end && length >= 16_384
            case .unnoticed, .reported: length >= end
            default: false
            }
        }
        #expect(wrong == [])
    }
}
