import TokenVaultPlatform

extension SimulatedDisk {
    /// Does what another disk's trace says was done, as if by processes of their own: they hold their locks
    /// while somebody on this disk looks on.
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
