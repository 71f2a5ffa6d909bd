internal import CLinux
internal import Glibc
package import SystemPackage

/// The identity of a file, independent of its name.
package struct FileIdentity: Hashable, Sendable {
    package let device: UInt64
    package let inode: UInt64

    package init(device: UInt64, inode: UInt64) {
        self.device = device
        self.inode = inode
    }
}

/// The attributes of a file, as `statx(2)` returns them.
package struct FileAttributes: Sendable {
    package enum Kind: Sendable { case regular, directory, symbolicLink, other }

    package var identity: FileIdentity
    package var kind: Kind
    package var size: Int
    /// The permission bits, without the kind.
    package var mode: UInt32
    package var owner: UInt32
    /// The number of names (hard links) of the file.
    package var links: Int

    package init(
        identity: FileIdentity, kind: Kind, size: Int, mode: UInt32, owner: UInt32, links: Int = 1
    ) {
        self.identity = identity
        self.kind = kind
        self.size = size
        self.mode = mode
        self.owner = owner
        self.links = links
    }
}

extension FileAttributes {
    /// Reads the attributes of an open file.
    init(of descriptor: CInt) throws(SystemFailure) {
        var answer = clinux_attributes()
        let result = clinux_attributes_of(descriptor, "", AT_EMPTY_PATH, &answer)
        try self.init(answer, result)
    }

    /// Reads the attributes of `name` in an open directory, without following a link. Throws `ENOENT` when
    /// there is none.
    init(of name: String, in directory: CInt) throws(SystemFailure) {
        var answer = clinux_attributes()
        let result = clinux_attributes_of(directory, name, AT_SYMLINK_NOFOLLOW, &answer)
        try self.init(answer, result)
    }

    /// Reads the attributes of the file at `path`, or without `followingLinks` of the link itself. Throws
    /// `ENOENT` when there is none.
    package init(at path: FilePath, followingLinks: Bool = true) throws(SystemFailure) {
        var answer = clinux_attributes()
        let flags = followingLinks ? 0 : AT_SYMLINK_NOFOLLOW
        let result = path.withPlatformString { clinux_attributes_of(AT_FDCWD, $0, flags, &answer) }
        try self.init(answer, result)
    }

    private init(_ answer: clinux_attributes, _ result: CInt) throws(SystemFailure) {
        guard result == 0 else { throw SystemFailure(Errno(rawValue: errno), "statx") }
        let kind: Kind =
            clinux_is_regular(answer.mode) != 0
            ? .regular
            : clinux_is_directory(answer.mode) != 0
                ? .directory : clinux_is_link(answer.mode) != 0 ? .symbolicLink : .other
        self.init(
            identity: FileIdentity(device: answer.device, inode: answer.inode), kind: kind,
            size: Int(answer.size), mode: answer.mode & 0o7777, owner: answer.owner, links: Int(answer.links))
    }
}

extension FileAttributes {
    /// Returns the last directory on the way to `path` with a known owner, and that owner.
    package static func nearestDirectory(to path: FilePath) -> (place: FilePath, owner: UInt32)? {
        var path = path
        while !path.isEmpty {
            if let there = try? FileAttributes(at: path) { return (path, there.owner) }
            guard path.removeLastComponent() else { return nil }
        }
        return (try? FileAttributes(at: ".")).map { (".", $0.owner) }
    }
}
