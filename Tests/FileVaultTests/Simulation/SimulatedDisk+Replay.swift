import TokenVaultPlatform

extension SimulatedDisk {
    /// Repeats an operation of another disk's trace, as if other processes did it. Those processes hold their
    /// locks while a program on this disk looks on.
    func replay(_ operation: DiskOperation) {
        modify { state in
            switch operation {
            case .write(let inode, let offset, let bytes):
                _ = state.write(bytes, count: bytes.count, inode: inode, at: offset)
            case .resize(let inode, let size): state.resize(inode: inode, to: size)
            case .create(let directory, let name, let inode):
                state.inodes[inode] = Inode()
                state.nextInode = max(state.nextInode, inode + 1)
                state.directories[directory][name] = inode
            case .rename(let directory, let name, let target):
                state.directories[directory][target] = state.directories[directory].removeValue(forKey: name)
            case .link(let directory, let name, let target):
                state.directories[directory][target] = state.directories[directory][name]
            case .remove(let directory, let name): state.directories[directory][name] = nil
            case .lock(let handle, let inode, let kind): state.inodes[inode]?.locks[-handle] = kind
            case .unlock(let handle, let inode): state.inodes[inode]?.locks[-handle] = nil
            case .synchronize, .failSynchronize, .synchronizeDirectory: break
            }
        }
    }
}
