internal import Glibc
internal import Synchronization

/// One object for each process. A forked child gets its own object and never touches the parent's. At the
/// fork another thread may have held that object's locks, and its threads do not exist in the child.
package final class PerProcess<Value: AnyObject & Sendable>: Sendable {
    private final class Held: Sendable {
        let process = ProcessFacts.identifier
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    // The address of a `Held` that is never released; 0 for none. Not a lock: a lock might be held at a fork.
    private let held = Atomic<UInt>(0)
    private let make: @Sendable () -> Value

    /// Creates a holder. `make` makes the object at its first use in each process.
    package init(_ make: @escaping @Sendable () -> Value) { self.make = make }

    /// This process's object.
    package var current: Value {
        while true {
            let address = held.load(ordering: .acquiring)
            if let there = UnsafeRawPointer(bitPattern: address) {
                let there = Unmanaged<Held>.fromOpaque(there).takeUnretainedValue()
                if there.process == ProcessFacts.identifier { return there.value }
            }
            let fresh = Unmanaged.passRetained(Held(make()))
            let (isFirst, _) = held.compareExchange(
                expected: address, desired: UInt(bitPattern: fresh.toOpaque()),
                ordering: .acquiringAndReleasing)
            if isFirst { return fresh.takeUnretainedValue().value }
            fresh.release()
        }
    }
}
