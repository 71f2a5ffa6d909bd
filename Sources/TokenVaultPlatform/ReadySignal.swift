internal import Glibc
internal import SystemPackage

/// Tells who started a program that it is ready: one byte through a descriptor that was passed on.
package enum ReadySignal {
    /// Writes the byte and closes the descriptor. Throws `EBADF` when there is none of that number.
    package static func send(to descriptor: CInt) throws(SystemFailure) {
        defer { close(descriptor) }
        let failure: SystemFailure? = [UInt8(1)].withUnsafeBytes { StandardStream.write($0, to: descriptor) }
        if let failure { throw failure }
    }
}
