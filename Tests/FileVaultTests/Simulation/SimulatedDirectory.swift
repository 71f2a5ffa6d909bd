import SystemPackage
import TokenVaultPlatform

/// A directory of a ``SimulatedDisk``.
final class SimulatedDirectory: DiskDirectory {
    let disk: SimulatedDisk
    let index: Int

    init(disk: SimulatedDisk, index: Int) {
        self.disk = disk
        self.index = index
    }

    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        guard access != .nameless || disk.hasNamelessFiles else {
            throw SystemFailure(.notSupportedOnSocket, "open(O_TMPFILE)")
        }
        let (inode, handle) = try disk.perform { (state) throws(SystemFailure) in
            let kind: DiskFault.Kind = access == .create || access == .nameless ? .create : .open
            try state.failIfAsked(kind, directory: index, name: name, call: "openat")
            let existing = state.directories[index][name]
            let inode: Int
            if access == .nameless {
                inode = state.makeInode()
            } else if access == .create {
                guard existing == nil else { throw SystemFailure(.fileExists, "openat") }
                inode = state.makeInode()
                state.directories[index][name] = inode
                state.trace.append(.create(directory: index, name: name, inode: inode))
            } else {
                guard let existing else { throw SystemFailure(.noSuchFileOrDirectory, "openat") }
                inode = existing
            }
            state.inodes[inode]?.openFiles += 1
            state.nextHandle += 1
            return (inode, state.nextHandle)
        }
        return SimulatedFile(
            directory: self, name: name, inode: inode, handle: handle, isWritable: access != .read)
    }

    func attributes(of name: String) throws(SystemFailure) -> FileAttributes? {
        try disk.perform { (state) throws(SystemFailure) in
            try state.failIfAsked(.attributes, directory: index, name: name, call: "fstatat")
            return state.directories[index][name].map { inode in
                disk.attributes(inode: inode, in: state)
            }
        }
    }

    func rename(_ name: String, to target: String, replacing: Bool) throws(SystemFailure) {
        try disk.perform { (state) throws(SystemFailure) in
            try state.failIfAsked(.rename, directory: index, name: name, call: "renameat")
            guard let inode = state.directories[index][name] else {
                throw SystemFailure(.noSuchFileOrDirectory, "renameat")
            }
            let replaced = state.directories[index][target]
            if replaced != nil, !replacing { throw SystemFailure(.fileExists, "renameat2") }
            if replaced == inode { return }
            state.directories[index][name] = nil
            state.directories[index][target] = inode
            state.trace.append(.rename(directory: index, name: name, target: target))
            if let replaced { state.forget(replaced) }
        }
    }

    func link(_ name: String, to target: String) throws(SystemFailure) {
        try disk.perform { (state) throws(SystemFailure) in
            try state.failIfAsked(.link, directory: index, name: name, call: "linkat")
            guard let inode = state.directories[index][name] else {
                throw SystemFailure(.noSuchFileOrDirectory, "linkat")
            }
            guard state.directories[index][target] == nil else { throw SystemFailure(.fileExists, "linkat") }
            state.directories[index][target] = inode
            state.trace.append(.link(directory: index, name: name, target: target))
        }
    }

    func remove(_ name: String) throws(SystemFailure) {
        try disk.perform { (state) throws(SystemFailure) in
            try state.failIfAsked(.remove, directory: index, name: name, call: "unlinkat")
            guard let inode = state.directories[index].removeValue(forKey: name) else {
                throw SystemFailure(.noSuchFileOrDirectory, "unlinkat")
            }
            state.trace.append(.remove(directory: index, name: name))
            state.forget(inode)
        }
    }

    func names() throws(SystemFailure) -> [String] {
        try disk.perform { (state) throws(SystemFailure) in
            try state.failIfAsked(.names, directory: index, name: "", call: "readdir")
            return Array(state.directories[index].keys)
        }
    }

    func synchronize() throws(SystemFailure) {
        try disk.perform { (state) throws(SystemFailure) in
            try state.failIfAsked(.synchronizeDirectory, directory: index, name: "", call: "fsync")
            state.trace.append(.synchronizeDirectory(directory: index))
        }
    }
}

extension SimulatedDisk {
    func attributes(inode: Int, in state: State) -> FileAttributes {
        FileAttributes(
            identity: FileIdentity(device: device, inode: UInt64(inode)), kind: .regular,
            size: state.inodes[inode]?.content.count ?? 0, mode: 0o600, owner: ProcessFacts.user,
            links: state.directories.reduce(0) { $0 + $1.values.count { $0 == inode } })
    }
}
