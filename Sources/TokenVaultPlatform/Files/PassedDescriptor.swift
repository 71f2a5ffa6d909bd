internal import Glibc

/// A descriptor from another program, closed with the last reference.
package final class PassedDescriptor: Sendable {
    private let number: CInt

    /// Takes over the descriptor.
    package init(_ number: CInt) { self.number = number }

    deinit { close(number) }
}
