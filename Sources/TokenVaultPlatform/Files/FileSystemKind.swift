/// Properties of file system types that matter when several processes or machines use files at once.
package enum FileSystemKind {
    /// The types in `statfs(2)` of NFS, SMB, SMB 2 and 3, CIFS, 9p, FUSE, AFS (two), Coda, NCP, Ceph, OCFS2,
    /// GFS2, Lustre, vboxsf, GPFS, BeeGFS. Not a set: making one costs every process more than searching an
    /// array.
    private static let remote: [UInt64] = [
        0x6969, 0x517b, 0xfe53_4d42, 0xff53_4d42, 0x0102_1997, 0x6573_5546, 0x5346_414f, 0x6b41_4653,
        0x7375_7245, 0x564c, 0x00c3_6400, 0x7461_636f, 0x0116_1970, 0x0bd0_0bd0,
        0x786f_4256, 0x4750_4653, 0x1983_0326,
    ]
    /// overlayfs: a file in a lower layer becomes a different file at its first write.
    private static let overlay: UInt64 = 0x794c_7630

    /// Returns whether other machines may write there, or a user-space program serves the files. Then reads
    /// may be stale, locks may not reach all processes, and some changes are not reported.
    package static func isRemote(_ type: UInt64) -> Bool { remote.contains(Self.bits(type)) }

    /// Returns whether `inotify(7)` reports every change. Returns false for an unknown type.
    package static func tellsEveryChange(_ type: UInt64) -> Bool {
        type != 0 && !isRemote(type) && Self.bits(type) != overlay
    }

    /// Removes the sign extension from a 32-bit type.
    private static func bits(_ type: UInt64) -> UInt64 { type & 0xffff_ffff }
}
