import Testing
import TokenVault

/// Whole frames of the log are swapped, taken out, put in twice, put back, and older files put in place.
@Suite struct FrameTests {
    /// The frames in another order, the rest of the file behind them at its place.
    struct Order: Sendable, CustomStringConvertible {
        var name: String
        var frames: [Int]
        var description: String { "\(name) \(frames)" }
    }

    private static func orders(of count: Int) -> [Order] {
        let all = Array(0..<count)
        var orders: [Order] = []
        for first in all {
            for second in all where second > first {
                var swapped = all
                swapped.swapAt(first, second)
                orders.append(Order(name: "swapped", frames: swapped))
            }
            for second in all where second >= first {
                orders.append(Order(name: "removed", frames: Array(all[..<first] + all[(second + 1)...])))
            }
            orders.append(Order(name: "doubled", frames: Array(all[...first] + all[first...])))
            // A frame that was valid before comes again at the end.
            orders.append(Order(name: "replayed", frames: all + [first]))
            for second in all where second != first {
                var replaced = all
                replaced[second] = first
                orders.append(Order(name: "replaced", frames: replaced))
            }
        }
        return orders
    }

    private static func apply(_ order: Order, _ frames: [Range<Int>], _ contents: inout DiskContents) {
        let bytes = contents.directories[0][SimulatedVault.name] ?? []
        var changed = bytes.bytes(in: 0..<16_896)
        for index in order.frames { changed += bytes.bytes(in: frames[index]) }
        changed.setCount(max(bytes.count, changed.count))
        contents.directories[0][SimulatedVault.name] = changed
    }

    @Test func withAnAnchorNoOrderPasses() async throws {
        let vault = try TamperedVault.make()
        let frames = vault.frames
        #expect(frames.count >= 6)
        let wrong = await vault.unaccepted(
            Self.orders(of: frames.count), apply: { Self.apply($0, frames, &$1) }
        ) { order, verdict in
            switch verdict {
            case .refused(.corrupt), .refused(.rolledBack): true
            // All frames are at their places, and something follows them.
            case .reported: order.name == "replayed" || order.frames.starts(with: 0..<frames.count)
            default: false
            }
        }
        #expect(wrong == [])
    }

    @Test func withoutAnAnchorOnlyTheEndCanGo() async throws {
        let vault = try TamperedVault.make().withoutAnchor()
        let frames = vault.frames
        let wrong = await vault.unaccepted(
            Self.orders(of: frames.count), apply: { Self.apply($0, frames, &$1) }
        ) { order, verdict in
            switch verdict {
            case .refused(.corrupt): true
            case .older: order.name == "removed" && order.frames == Array(0..<order.frames.count)
            case .reported: order.frames.starts(with: 0..<frames.count)
            default: false
            }
        }
        #expect(wrong == [])
    }

    /// A record of an older file at the end of a newer one, which compaction gave another epoch.
    @Test(arguments: [true, false])
    func framesOfAnotherLifeOfTheLogAreRefused(withAnchor: Bool) async throws {
        let vault = try TamperedVault.make()
        let disk = SimulatedDisk(vault.contents)
        let opened = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        _ = try opened.compact()
        opened.close()
        var compacted = vault
        compacted.contents = disk.contents
        let end = compacted.end
        let subject = withAnchor ? compacted : compacted.withoutAnchor()
        let wrong = await subject.unaccepted(
            Array(vault.frames.indices),
            apply: { index, contents in
                let frame = vault.file.bytes(in: vault.frames[index])
                contents.directories[0][SimulatedVault.name]?.put(
                    frame, in: 0..<frame.count, at: end)
            }
        ) { _, verdict in verdict == .refused(.corrupt) || verdict == .reported }
        #expect(wrong == [])
    }

    @Test func withAnAnchorAnOlderFileIsRolledBack() throws {
        let vault = try TamperedVault.make()
        for copy in vault.older {
            var contents = vault.contents
            contents.directories[0] = copy.contents.directories[0]
            #expect(vault.judge(contents) == .refused(.rolledBack), "with \(copy.facts.count) items")
        }
    }

    @Test func withAnAnchorAFileFromBeforeCompactionIsRolledBack() throws {
        let vault = try TamperedVault.make()
        let disk = SimulatedDisk(vault.contents)
        let opened = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
        _ = try opened.compact()
        opened.close()
        for copy in vault.older + [(vault.contents, vault.facts)] {
            var contents = disk.contents
            contents.directories[0] = copy.contents.directories[0]
            #expect(vault.judge(contents) == .refused(.rolledBack), "with \(copy.facts.count) items")
        }
    }

    /// Nothing on the device knows better: the older copy opens, as what it was.
    @Test func withoutAnAnchorAnOlderFileIsItself() throws {
        let vault = try TamperedVault.make()
        for copy in vault.older {
            var contents = vault.withoutAnchor().contents
            contents.directories[0] = copy.contents.directories[0]
            #expect(vault.judge(contents) == .older(copy.facts))
        }
    }

    /// Another vault's file under this one's name is not this one, even where the same key opens it.
    @Test func theFileOfAnotherVaultIsNotThisOne() throws {
        let vault = try TamperedVault.make()
        let other = try TamperedVault.make()
        for (offset, length) in [(0, 8_192), (8_192, 8_192), (0, 16_384), (16_384, vault.end - 16_384)] {
            let foreign = other.file.bytes(in: offset..<offset + length)
            let verdict = vault.judge { $0.put(foreign, in: 0..<foreign.count, at: offset) }
            switch verdict {
            case .refused(.corrupt), .reported: break
            default: Issue.record("\(length) bytes of another vault at \(offset): \(verdict)")
            }
        }
    }
}
