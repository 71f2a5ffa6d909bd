import SystemPackage
import TokenVaultPlatform

/// An open file of a ``SimulatedDisk``. Its lock belongs to this open file and lies on the inode, as an
/// OFD lock does; it goes with the last reference.
final class SimulatedFile: DiskFile {
    private let directory: SimulatedDirectory
    private let name: String
    private let inode: Int
    private let handle: Int
    private let isWritable: Bool
    private var disk: SimulatedDisk { directory.disk }

    init(directory: SimulatedDirectory, name: String, inode: Int, handle: Int, isWritable: Bool) {
        self.directory = directory
        self.name = name
        self.inode = inode
        self.handle = handle
        self.isWritable = isWritable
    }

    deinit {
        try? disk.perform { (state) throws(SystemFailure) in
            if state.inodes[inode]?.locks.removeValue(forKey: handle) != nil {
                state.trace.append(.unlock(handle: handle, inode: inode))
            }
            state.inodes[inode]?.openFiles -= 1
            state.forget(inode)
        }
    }

    func read(_ count: Int, at offset: Int) throws(SystemFailure) -> [UInt8] {
        try disk.perform { (state) throws(SystemFailure) in
            try state.failIfAsked(.read, directory: directory.index, name: name, call: "pread")
            guard count >= 0, offset >= 0 else { throw SystemFailure(.invalidArgument, "pread") }
            let size = state.inodes[inode]?.content.count ?? 0
            guard offset < size else { return [] }
            let end = count > size - offset ? size : offset + count
            return state.inodes[inode]?.content.bytes(in: offset..<end) ?? []
        }
    }

    func write(_ bytes: [UInt8], at offset: Int) throws(SystemFailure) {
        try disk.perform { (state) throws(SystemFailure) in
            guard isWritable else { throw SystemFailure(.badFileDescriptor, "pwrite") }
            guard offset >= 0 else { throw SystemFailure(.invalidArgument, "pwrite") }
            if let fault = state.fault(.write, directory: directory.index, name: name) {
                let part = min(fault.bytesWritten, bytes.count)
                _ = state.write(bytes, count: part, inode: inode, at: offset)
                throw SystemFailure(fault.errno, "pwrite")
            }
            let written = state.write(bytes, count: bytes.count, inode: inode, at: offset)
            if written < bytes.count { throw SystemFailure(.noSpace, "pwrite") }
        }
    }

    func synchronize() throws(SystemFailure) {
        try disk.perform { (state) throws(SystemFailure) in
            if let fault = state.fault(.synchronize, directory: directory.index, name: name) {
                state.trace.append(.failSynchronize(inode: inode))
                throw SystemFailure(fault.errno, "fdatasync")
            }
            state.trace.append(.synchronize(inode: inode))
        }
    }

    func resize(to size: Int) throws(SystemFailure) {
        try disk.perform { (state) throws(SystemFailure) in
            guard isWritable, size >= 0 else { throw SystemFailure(.invalidArgument, "ftruncate") }
            try state.failIfAsked(.resize, directory: directory.index, name: name, call: "ftruncate")
            state.resize(inode: inode, to: size)
        }
    }

    func attributes() throws(SystemFailure) -> FileAttributes {
        try disk.perform { (state) throws(SystemFailure) in
            disk.attributes(inode: inode, in: state)
        }
    }

    func tryLock(_ kind: FileLock) throws(SystemFailure) -> Bool {
        try disk.perform { (state) throws(SystemFailure) in
            try state.failIfAsked(.lock, directory: directory.index, name: name, call: "fcntl(F_OFD_SETLK)")
            if kind == .exclusive, !isWritable {
                throw SystemFailure(.badFileDescriptor, "fcntl(F_OFD_SETLK)")
            }
            let others = (state.inodes[inode]?.locks ?? [:]).filter { $0.key != handle }
            if others.values.contains(where: { $0 == .exclusive || kind == .exclusive }) { return false }
            state.inodes[inode]?.locks[handle] = kind
            state.trace.append(.lock(handle: handle, inode: inode, kind: kind))
            return true
        }
    }

    var isLockedForWriting: Bool {
        let isLocked = try? disk.perform { (state) throws(SystemFailure) in
            (state.inodes[inode]?.locks ?? [:]).contains { $0.key != handle && $0.value == .exclusive }
        }
        return isLocked == true
    }

    func takeName(_ name: String) throws(SystemFailure) {
        try disk.perform { (state) throws(SystemFailure) in
            let index = directory.index
            try state.failIfAsked(.link, directory: index, name: name, call: "linkat")
            guard state.directories[index][name] == nil else { throw SystemFailure(.fileExists, "linkat") }
            state.directories[index][name] = inode
            state.trace.append(.create(directory: index, name: name, inode: inode))
        }
    }

    func unlock() {
        try? disk.perform { (state) throws(SystemFailure) in
            if state.inodes[inode]?.locks.removeValue(forKey: handle) != nil {
                state.trace.append(.unlock(handle: handle, inode: inode))
            }
        }
    }
}
