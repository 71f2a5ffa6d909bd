/// What the disk itself may hold at one moment of a trace: what was made durable, and what is on its way.
///
/// The rules, each the least that POSIX and Linux file systems promise:
/// - A sector of 512 bytes is written as a whole. It holds its content of the last sync, or of any moment
///   since, whatever the other sectors do.
/// - The size is one that the file had at the last sync or since. Bytes below the size that were never
///   written out are zero.
/// - Syncing a file makes its bytes and its size durable, never its name.
/// - Changes of one directory reach the disk in their order, each as a whole. Two directories are independent
///   of each other. Syncing a directory makes all its changes durable.
/// - After a failed sync, what was written before it may or may not be on the disk, for good. A later sync
///   succeeds without writing it.
struct CrashImage: Sendable {
    static let sectorSize = 512

    /// A change of a file that is not yet known to be on the disk.
    struct FileChange: Sendable {
        enum Kind: Sendable {
            case write(offset: Int, bytes: [UInt8])
            case resize(Int)
        }
        enum Fate: Sendable {
            /// It can still reach the disk, or not.
            case open
            /// A failed sync dropped it, after it reached the disk or before.
            case lost
            /// It is on the disk, but a lost change that came before is not.
            case durable
        }

        /// Its place in the trace.
        let position: Int
        let kind: Kind
        var fate = Fate.open

        /// The sectors it touches; none for a change of the size.
        var sectors: Range<Int> {
            guard case .write(let offset, let bytes) = kind, !bytes.isEmpty else { return 0..<0 }
            return offset / CrashImage.sectorSize..<(offset + bytes.count - 1) / CrashImage.sectorSize + 1
        }
    }

    struct File: Sendable {
        var base: [UInt8] = []
        var changes: [FileChange] = []
    }

    /// A change of a directory that was not synced.
    struct EntryChange: Sendable {
        enum Kind: Sendable {
            case create(name: String, inode: Int)
            case rename(name: String, target: String)
            case link(name: String, target: String)
            case remove(name: String)
        }
        let position: Int
        let kind: Kind
    }

    struct Directory: Sendable {
        var base: [String: Int] = [:]
        var changes: [EntryChange] = []

        /// The entries after the first `count` changes.
        func entries(keeping count: Int) -> [String: Int] {
            var entries = base
            for change in changes.prefix(count) {
                switch change.kind {
                case .create(let name, let inode): entries[name] = inode
                case .rename(let name, let target): entries[target] = entries.removeValue(forKey: name)
                case .link(let name, let target): entries[target] = entries[name]
                case .remove(let name): entries[name] = nil
                }
            }
            return entries
        }
    }

    private(set) var files: [Int: File] = [:]
    private(set) var directories: [Directory]

    /// The image of a disk that holds `contents`, with the inodes that ``SimulatedDisk`` gives them.
    init(_ contents: DiskContents) {
        directories = contents.directories.map { _ in Directory() }
        var inode = 1
        for (index, entries) in contents.directories.enumerated() {
            for (name, content) in entries.sorted(by: { $0.key < $1.key }) {
                files[inode] = File(base: content)
                directories[index].base[name] = inode
                inode += 1
            }
        }
    }

    /// Follows the operation that stands at `position` in the trace.
    mutating func apply(_ operation: DiskOperation, at position: Int) {
        switch operation {
        case .write(let inode, let offset, let bytes):
            files[inode, default: File()].changes.append(
                FileChange(position: position, kind: .write(offset: offset, bytes: bytes)))
        case .resize(let inode, let size):
            files[inode, default: File()].changes.append(
                FileChange(position: position, kind: .resize(size)))
        case .synchronize(let inode): settle(inode)
        case .failSynchronize(let inode):
            for index in files[inode]?.changes.indices ?? 0..<0
            where files[inode]?.changes[index].fate == .open {
                files[inode]?.changes[index].fate = .lost
            }
        case .create(let directory, let name, let inode):
            // A file that was nameless before may already have been written to.
            files[inode] = files[inode] ?? File()
            append(.create(name: name, inode: inode), to: directory, at: position)
        case .rename(let directory, let name, let target):
            append(.rename(name: name, target: target), to: directory, at: position)
        case .link(let directory, let name, let target):
            append(.link(name: name, target: target), to: directory, at: position)
        case .remove(let directory, let name): append(.remove(name: name), to: directory, at: position)
        case .synchronizeDirectory(let index):
            let directory = directories[index]
            directories[index] = Directory(base: directory.entries(keeping: directory.changes.count))
        case .lock, .unlock: break
        }
    }

    private mutating func append(_ kind: EntryChange.Kind, to directory: Int, at position: Int) {
        directories[directory].changes.append(EntryChange(position: position, kind: kind))
    }

    /// Makes the open changes of a file durable.
    private mutating func settle(_ inode: Int) {
        guard var file = files[inode] else { return }
        for index in file.changes.indices where file.changes[index].fate == .open {
            file.changes[index].fate = .durable
        }
        let settled = file.changes.firstIndex { $0.fate == .lost } ?? file.changes.count
        if settled > 0 {
            let rest = file.changes.suffix(from: settled)
            file.changes.removeSubrange(settled...)
            file.base = file.content(after: .nothing)
            file.changes = Array(rest)
        }
        files[inode] = file
    }

    /// What is on the disk when the choice is `choice`.
    func contents(after choice: CrashChoice) -> DiskContents {
        DiskContents(
            directories: directories.enumerated().map { index, directory in
                directory.entries(keeping: choice.entries[index]).mapValues { inode in
                    files[inode]?.content(after: choice.files[inode] ?? choice.otherFiles) ?? []
                }
            })
    }

    /// The inodes that some choice gives a name.
    var reachable: [Int] {
        var inodes: Set<Int> = []
        for directory in directories {
            for count in 0...directory.changes.count {
                inodes.formUnion(directory.entries(keeping: count).values)
            }
        }
        return inodes.sorted()
    }
}

extension CrashImage.File {
    /// The bytes of the file when `choice` says which of its changes reached the disk.
    func content(after choice: CrashChoice.File) -> [UInt8] {
        var content = base
        var size = base.count
        for change in changes {
            switch change.kind {
            case .write(let offset, let bytes):
                for range in choice.keptRanges(of: change, at: offset, count: bytes.count) {
                    content.put(bytes, in: range, at: offset + range.lowerBound)
                }
                if choice.keepsSize(change) { size = max(size, offset + bytes.count) }
            case .resize(let newSize):
                guard choice.keepsSize(change) else { continue }
                if newSize < content.count { content.setCount(newSize) }
                size = newSize
            }
        }
        content.setCount(size)
        return content
    }
}
