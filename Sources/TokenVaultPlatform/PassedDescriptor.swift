internal import Glibc

/// A descriptor that another program passed to this one; closed with the last reference.
package final class PassedDescriptor: Sendable {
    private let number: CInt

    /// Takes it over.
    package init(_ number: CInt) { self.number = number }

    deinit { close(number) }
}
