package import SystemPackage

/// A failed system call, with its error.
@usableFromInline
package struct SystemFailure: Error, Equatable, Sendable {
    /// The error, as `errno(3)` names it.
    package let errno: Errno
    /// The name of the system call, as in its manual page.
    package let call: String

    package init(_ errno: Errno, _ call: String) {
        self.errno = errno
        self.call = call
    }
}
