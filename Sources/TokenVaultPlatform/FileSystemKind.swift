/// What a kind of file system means for files that several processes, or machines, use at once.
package enum FileSystemKind {
    /// `statfs(2)`'s types: NFS, SMB, SMB 2 and 3, CIFS, 9p, FUSE, AFS (two), Coda, NCP, Ceph, OCFS2, GFS2, Lustre,
    /// vboxsf, GPFS, BeeGFS. No set: making one costs every process more than looking through.
    private static let remote: [UInt64] = [
        0x6969, 0x517b, 0xfe53_4d42, 0xff53_4d42, 0x0102_1997, 0x6573_5546, 0x5346_414f, 0x6b41_4653,
        0x7375_7245, 0x564c, 0x00c3_6400, 0x7461_636f, 0x0116_1970, 0x0bd0_0bd0,
        0x786f_4256, 0x4750_4653, 0x1983_0326,
    ]
    /// overlayfs: a file in a lower layer is another file once it is written to.
    private static let overlay: UInt64 = 0x794c_7630

    /// Whether other machines may write there, or a program of its own stands between the kernel and the files: what
    /// is read may be old, locks may not reach everybody, and not every change is told.
    package static func isRemote(_ type: UInt64) -> Bool { remote.contains(Self.bits(type)) }

    /// Whether `inotify(7)` tells of every change. A type that cannot be told is taken for one where it does not.
    package static func tellsEveryChange(_ type: UInt64) -> Bool {
        type != 0 && !isRemote(type) && Self.bits(type) != overlay
    }

    /// A type of 32 bits may come with its sign.
    private static func bits(_ type: UInt64) -> UInt64 { type & 0xffff_ffff }
}
