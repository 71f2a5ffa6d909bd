/// A value that another thread makes while this one does something else.
package final class Aside<Value: Sendable>: Sendable {
    private let made = Monitor<Value?>(nil)

    /// Begins to make it; where no thread is to be had, makes it here.
    package init(_ make: @escaping @Sendable () -> Value) {
        let made = made
        WorkerThread(name: "vault-aside").run {
            let value = make()
            made.announce { $0 = value }
        }
    }

    /// The value, as soon as it is made.
    package var value: Value { made.wait { $0 } }
}
