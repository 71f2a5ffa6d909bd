internal import Glibc
internal import SystemPackage
package import TokenVaultPlatform

/// Reports to the parent that a program is ready: one byte through an inherited descriptor.
package enum ReadySignal {
    /// Returns whether the descriptor exists and can be written to. Programs that are started from now on do
    /// not inherit it. Call this before anything else is opened, because a later file may get the number.
    package static func exists(_ descriptor: CInt) -> Bool {
        let flags = fcntl(descriptor, F_GETFL)
        return flags >= 0 && flags & O_ACCMODE != O_RDONLY && fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0
    }

    /// Writes the byte and closes the descriptor. Throws `EBADF` when the descriptor does not exist.
    package static func send(to descriptor: CInt) throws(SystemFailure) {
        defer { close(descriptor) }
        let failure: SystemFailure? = [UInt8(1)].withUnsafeBytes { StandardStream.write($0, to: descriptor) }
        if let failure { throw failure }
    }
}
