import Synchronization
import SystemPackage
import TokenVaultPlatform

/// A disk in memory: directories, inodes, locks of open files, a trace of everything that was done, and
/// failures on demand. The disk shows what a running system sees. ``CrashImage`` derives from the trace what
/// a crash would leave.
final class SimulatedDisk: Sendable {
    /// A file: its bytes, its locks, and how often it is open.
    struct Inode {
        var content: [UInt8] = []
        /// The blocks that have a place on the disk. A hole has none, so writing into it can fail.
        var blocks: Set<Int> = []
        var locks: [Int: FileLock] = [:]
        var openFiles = 0
    }

    struct State {
        var inodes: [Int: Inode] = [:]
        var directories: [[String: Int]]
        var trace: [DiskOperation] = []
        var faults: [DiskFault] = []
        var freeBlocks = Int.max
        var nextInode = 1
        var nextHandle = 1
    }

    static let blockSize = 4_096
    private static let lastDevice = Atomic<UInt64>(0)

    /// A number no other simulated disk has: the vault knows its files by device and inode.
    let device: UInt64
    /// Whether it knows files without names.
    let hasNamelessFiles: Bool
    private let state: Monitor<State>

    /// A disk that holds `contents`, all of it durable.
    init(
        _ contents: DiskContents = DiskContents(directories: [[:], [:]]), hasNamelessFiles: Bool = false
    ) {
        self.hasNamelessFiles = hasNamelessFiles
        device = Self.lastDevice.add(1, ordering: .relaxed).newValue + (1 << 40)
        var state = State(directories: contents.directories.map { _ in [:] })
        for (directory, files) in contents.directories.enumerated() {
            for (name, content) in files.sorted(by: { $0.key < $1.key }) {
                state.inodes[state.nextInode] = Inode(
                    content: content, blocks: Set(Self.blocks(0..<content.count)))
                state.directories[directory][name] = state.nextInode
                state.nextInode += 1
            }
        }
        self.state = Monitor(state)
    }

    /// One of the disk's directories.
    func directory(_ index: Int) -> SimulatedDirectory { SimulatedDirectory(disk: self, index: index) }

    /// Everything done so far.
    var trace: [DiskOperation] { state.withLock { $0.trace } }
    /// How many operations were done so far.
    var position: Int { state.withLock { $0.trace.count } }

    /// What a running system sees in the directories now.
    var contents: DiskContents {
        state.withLock { state in
            DiskContents(
                directories: state.directories.map { entries in
                    entries.mapValues { state.inodes[$0]?.content ?? [] }
                })
        }
    }

    /// Adds a failure to have.
    func inject(_ fault: DiskFault) { state.withLock { $0.faults.append(fault) } }

    /// Drops every failure still to come.
    func heal() {
        state.withLock {
            $0.faults = []
            $0.freeBlocks = .max
        }
    }

    /// Leaves room for `bytes` more, rounded down to blocks.
    func leaveFree(_ bytes: Int) { state.withLock { $0.freeBlocks = bytes / Self.blockSize } }

    /// Changes the bytes of a file behind its user's back.
    func tamper(_ directory: Int, _ name: String, _ change: (inout [UInt8]) -> Void) {
        state.withLock { state in
            guard let inode = state.directories[directory][name] else { return }
            change(&state.inodes[inode, default: Inode()].content)
        }
    }

    func modify(_ body: (inout State) -> Void) { state.withLock(body) }

    func perform<Result>(
        _ body: (inout State) throws(SystemFailure) -> Result
    ) throws(SystemFailure) -> Result {
        let result: Swift.Result<Result, SystemFailure> = state.withLock { state in
            do throws(SystemFailure) { return .success(try body(&state)) } catch { return .failure(error) }
        }
        return try result.get()
    }

    static func blocks(_ range: Range<Int>) -> Range<Int> {
        range.isEmpty
            ? 0..<0 : (range.lowerBound / blockSize)..<((range.upperBound + blockSize - 1) / blockSize)
    }
}

extension SimulatedDisk.State {
    /// The failure that this operation is to have, if any.
    mutating func fault(_ kind: DiskFault.Kind, directory: Int, name: String) -> DiskFault? {
        var failing: DiskFault?
        for index in faults.indices
        where faults[index].kind == kind && faults[index].directory ?? directory == directory
            && name.hasSuffix(faults[index].suffix)
        {
            if faults[index].skipping > 0 {
                faults[index].skipping -= 1
            } else if faults[index].times > 0, failing == nil {
                faults[index].times -= 1
                failing = faults[index]
            }
        }
        return failing
    }

    mutating func failIfAsked(
        _ kind: DiskFault.Kind, directory: Int, name: String, call: String
    ) throws(SystemFailure) {
        if let fault = fault(kind, directory: directory, name: name) {
            throw SystemFailure(fault.errno, call)
        }
    }

    /// A new file, without a name.
    mutating func makeInode() -> Int {
        defer { nextInode += 1 }
        inodes[nextInode] = SimulatedDisk.Inode()
        return nextInode
    }

    /// Writes a part of `bytes`, as much as there is room for; returns how much that was.
    mutating func write(_ bytes: [UInt8], count: Int, inode: Int, at offset: Int) -> Int {
        var written = 0
        for block in SimulatedDisk.blocks(offset..<offset + count) {
            if inodes[inode]?.blocks.contains(block) != true {
                guard freeBlocks > 0 else { break }
                if freeBlocks != .max { freeBlocks -= 1 }
                inodes[inode]?.blocks.insert(block)
            }
            written = min(count, (block + 1) * SimulatedDisk.blockSize - offset)
        }
        if written > 0 {
            inodes[inode]?.content.put(bytes, in: 0..<written, at: offset)
            trace.append(
                .write(
                    inode: inode, offset: offset,
                    bytes: written == bytes.count ? bytes : bytes.bytes(in: 0..<written)))
        }
        return written
    }

    mutating func resize(inode: Int, to size: Int) {
        inodes[inode]?.content.setCount(size)
        let kept = SimulatedDisk.blocks(0..<size)
        let dropped = inodes[inode]?.blocks.filter { !kept.contains($0) } ?? []
        inodes[inode]?.blocks.subtract(dropped)
        if freeBlocks != .max { freeBlocks += dropped.count }
        trace.append(.resize(inode: inode, size: size))
    }

    /// Gives back the blocks of a file that has no name and that no process has open.
    mutating func forget(_ inode: Int) {
        guard let file = inodes[inode], file.openFiles == 0,
            !directories.contains(where: { $0.values.contains(inode) })
        else { return }
        if freeBlocks != .max { freeBlocks += file.blocks.count }
        inodes[inode] = nil
    }
}
