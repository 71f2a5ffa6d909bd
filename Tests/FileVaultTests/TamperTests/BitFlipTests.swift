import TestLanes
import Testing
import TokenVault

/// One bit of a small vault is another. Every bit is tried without an anchor, where less is known; with one,
/// one bit of each byte.
@Suite struct BitFlipTests {
    struct Flip: Sendable, CustomStringConvertible {
        var offset: Int
        var bit: Int
        var description: String { "byte \(offset), bit \(bit)" }
    }

    /// Returns the bits to flip in `range`. A byte is busy when it or a byte near it is not zero. With
    /// `closely`, these are all bits of each busy byte, and one bit of each other byte. Otherwise they are
    /// one bit of each busy byte.
    static func flips(of bytes: [UInt8], in range: Range<Int>, closely: Bool = true) -> [Flip] {
        range.flatMap { offset in
            let isBusy = bytes[max(0, offset - 8)..<min(bytes.count, offset + 9)].contains { $0 != 0 }
            let bits = closely ? (isBusy ? Array(0..<8) : [offset % 8]) : (isBusy ? [offset % 8] : [])
            return bits.map { Flip(offset: offset, bit: $0) }
        }
    }

    static func flip(_ flip: Flip, _ contents: inout DiskContents) {
        contents.directories[0][SimulatedVault.name]?[flip.offset] ^= 1 << flip.bit
    }

    @Test(.tags(.endurance), .from(.all), arguments: [true, false])
    func inTheKeybagCopies(withAnchor: Bool) async throws {
        let vault = try TamperedVault.make().withFewZeros()
        let subject = withAnchor ? vault : vault.withoutAnchor()
        // The other copy is whole, so every item is readable, and the damage is reported.
        let wrong = await subject.unaccepted(
            Self.flips(of: vault.file, in: 0..<16_384, closely: !withAnchor), apply: Self.flip
        ) { _, verdict in verdict == .reported }
        #expect(wrong == [])
    }

    @Test(.tags(.endurance), .from(.all), arguments: [true, false])
    func inTheFrames(withAnchor: Bool) async throws {
        let vault = try TamperedVault.make().withFewZeros()
        let subject = withAnchor ? vault : vault.withoutAnchor()
        let wrong = await subject.unaccepted(
            Self.flips(of: vault.file, in: 16_384..<vault.end, closely: !withAnchor), apply: Self.flip
        ) { _, verdict in verdict == .refused(.corrupt) || verdict == .reported }
        #expect(wrong == [])
    }

    @Test(arguments: [true, false])
    func inTheZerosBehindTheLog(withAnchor: Bool) async throws {
        let vault = try TamperedVault.make().withFewZeros()
        let subject = withAnchor ? vault : vault.withoutAnchor()
        // The changed bytes may look like the remainder of a crash, or be rejected. Either way, no item is
        // lost.
        let wrong = await subject.unaccepted(
            Self.flips(of: vault.file, in: vault.end..<vault.file.count), apply: Self.flip
        ) { _, verdict in verdict == .refused(.corrupt) || verdict == .reported }
        #expect(wrong == [])
    }

    @Test func inTheAnchor() async throws {
        let vault = try TamperedVault.make().withFewZeros()
        let name = try #require(vault.contents.directories[1].keys.first { $0.hasSuffix(".anchor") })
        let bytes = try #require(vault.contents.directories[1][name])
        let wrong = await vault.unaccepted(
            Self.flips(of: bytes, in: 0..<bytes.count),
            apply: { flip, contents in contents.directories[1][name]?[flip.offset] ^= 1 << flip.bit }
        ) { _, verdict in verdict == .unnoticed || verdict == .reported }
        #expect(wrong == [])
    }

    @Test func inTheDeviceKey() async throws {
        let vault = try TamperedVault.make().withFewZeros()
        let name = try #require(vault.contents.directories[1].keys.first { $0.hasSuffix(".device") })
        let bytes = try #require(vault.contents.directories[1][name])
        let wrong = await vault.unaccepted(
            (0..<bytes.count * 8).map { Flip(offset: $0 / 8, bit: $0 % 8) },
            apply: { flip, contents in contents.directories[1][name]?[flip.offset] ^= 1 << flip.bit }
        ) { _, verdict in
            // With another key, this device no longer counts as the device of the items.
            verdict == .refused(.corrupt) || verdict == .refused(.wrongDevice)
        }
        #expect(wrong == [])
    }
}
