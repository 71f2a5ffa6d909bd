package import SystemPackage

/// A system call that failed: which one, and why.
package struct SystemFailure: Error, Equatable, Sendable {
    /// The reason, as `errno(3)` names it.
    package let errno: Errno
    /// The system call, as its manual page is named.
    package let call: String

    package init(_ errno: Errno, _ call: String) {
        self.errno = errno
        self.call = call
    }
}
