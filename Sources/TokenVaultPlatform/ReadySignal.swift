internal import Glibc
internal import SystemPackage

/// Tells who started a program that it is ready: one byte through a descriptor that was passed on.
package enum ReadySignal {
    /// Whether there is a descriptor of that number that can be written to; it is kept from programs that are started from
    /// now on. To be asked before anything else is opened: what is opened later may get the number.
    package static func exists(_ descriptor: CInt) -> Bool {
        let flags = fcntl(descriptor, F_GETFL)
        return flags >= 0 && flags & O_ACCMODE != O_RDONLY && fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0
    }

    /// Writes the byte and closes the descriptor. Throws `EBADF` when there is none of that number.
    package static func send(to descriptor: CInt) throws(SystemFailure) {
        defer { close(descriptor) }
        let failure: SystemFailure? = [UInt8(1)].withUnsafeBytes { StandardStream.write($0, to: descriptor) }
        if let failure { throw failure }
    }
}
