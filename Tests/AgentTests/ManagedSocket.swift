import Glibc
import SystemPackage
import Testing

@testable import TokenVaultPlatform

/// What a service manager passes on: made by its path.
enum ManagedSocket {
    /// A socket at `path`, in a directory that is made when it is missing.
    static func listen(at path: FilePath) throws -> SocketListener {
        let directory = path.removingLastComponent()
        if !(try SmallFile.exists(directory)) { try PosixDirectory.makeAll(directory) }
        let listener = SocketListener(descriptor: socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0))
        try #require(fcntl(listener.descriptor, F_SETFD, FD_CLOEXEC) == 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = path.string.utf8CString
        try #require(bytes.count <= MemoryLayout.size(ofValue: address.sun_path))
        withUnsafeMutableBytes(of: &address.sun_path) { name in
            bytes.withUnsafeBytes { name.copyMemory(from: $0) }
        }
        let isBound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener.descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        try #require(isBound && Glibc.listen(listener.descriptor, 8) == 0)
        return listener
    }
}
