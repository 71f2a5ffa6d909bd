import HookedStorage
import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// Small files that look long. What they are searched for is bounded by their bytes on the disk.
@Suite struct HostileLengthTests {
    private let device = TestDevice()

    /// The front of a long frame is bound to no place. Repeated, each one seems to be a long frame.
    @Test func aFrontThatIsRepeatedIsNotFollowedEachTime() throws {
        try device.create()
        try device.use { try $0.store(String(repeating: "a", count: 200_000), for: "long") }
        let frames = TamperedVault(contents: device.disk.contents, facts: [:]).frames
        let long = try #require(frames.first { $0.count > 200_000 })
        var file = device.file.bytes(in: 0..<long.lowerBound)
        let front = device.file.bytes(in: long.lowerBound..<long.lowerBound + Frame.contentOffset)
        for _ in 1...2_000 { file += front }
        file += [UInt8](repeating: 0, count: long.count) + [UInt8](repeating: 1, count: 64)
        let disk = SimulatedDisk()
        let place = try disk.directory(0).open("hostile", .create)
        try place.write(file, at: 0)
        let found = try device.use { vault in
            var finder = try FrameFinder(file: place, codec: try vault.session().log.codec)
            var found = 0
            try finder.forEach { finding throws(TokenStorageError) in if case .frame = finding { found += 1 }
            }
            return found
        }
        #expect((10...200).contains(found), "\(found)")
    }

    /// A file with a hole, and a byte behind it.
    @Test func aHoleIsNotRead() throws {
        let length = 1 << 30
        let sandbox = try Sandbox()
        let place = sandbox.vault.removingLastComponent()
        try PosixDirectory.makeAll(place)
        let directory = try PosixDirectory(place)
        let base = try directory.open("sparse", .create)
        try base.write([1], at: VaultFormat.logStart)
        try base.write([1], at: length - 1)
        let file = CountingFile(base)
        try device.create()
        try device.use { vault in
            let codec = try vault.session().log.codec
            _ = failure { try TailClassifier(file: file, codec: codec).requireTorn(at: VaultFormat.logStart) }
            var finder = try FrameFinder(file: file, codec: codec)
            try finder.forEach { _ throws(TokenStorageError) in }
        }
        #expect(file.count.withLock { $0 } < 64 << 20)
    }
}

/// Counts the bytes that are asked for.
private final class CountingFile: ForwardingFile {
    let base: any DiskFile
    let count = Mutex(0)

    init(_ base: any DiskFile) { self.base = base }

    func read(_ count: Int, at offset: Int) throws(SystemFailure) -> [UInt8] {
        let bytes = try base.read(count, at: offset)
        self.count.withLock { $0 += bytes.count }
        return bytes
    }
}
