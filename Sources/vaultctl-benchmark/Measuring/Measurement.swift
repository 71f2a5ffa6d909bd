/// An operation that is timed.
enum Operation: String, CaseIterable {
    case store, retrieve, delete

    /// An explanation of figures for a vault that a user would otherwise take for a mistake.
    var note: String? {
        guard self == .delete else { return nil }
        return
            "Deleting from a vault of at most 1 MiB writes the other items into a new file, and the deleted value is "
            + "gone at once. Deleting from a larger vault overwrites the value."
    }
}

/// The latencies of one operation of one backend, with `items` items in the backend.
struct Measurement {
    let backend: String
    let operation: Operation
    let items: Int
    let valueSize: Int
    let latencies: Latencies
}

/// The time that this machine takes for the one step that an operation cannot do without.
struct MachineLimit {
    enum Kind: String, CaseIterable {
        /// `pwrite` and `fdatasync` of as many bytes as a store writes.
        case sync = "fdatasync"
        /// Opening a sealed secret.
        case opening = "AEAD"
        /// An exchange of as many bytes with another process.
        case echo
    }

    let kind: Kind
    /// The number of bytes that were written, opened or answered.
    let bytes: Int
    let valueSize: Int
    let latencies: Latencies

    /// A readable name for the step.
    var title: String {
        switch kind {
        case .sync: "pwrite and fdatasync of \(grouped(bytes)) bytes"
        case .opening: "XChaCha20-Poly1305 of \(grouped(bytes)) bytes"
        case .echo: "echo of \(grouped(bytes)) bytes through a Unix socket"
        }
    }
}

extension Measurement {
    /// The step that bounds the operation's speed; `nil` when none is known.
    var limit: MachineLimit.Kind? {
        switch (backend, operation) {
        case (BackendName.file, .retrieve): .opening
        case (BackendName.agent, .retrieve): .echo
        case (BackendName.file, _), (BackendName.agent, _): .sync
        default: nil
        }
    }
}

extension Operation {
    /// The limits that are shown with the operation.
    var limits: [MachineLimit.Kind] { self == .retrieve ? [.opening, .echo] : [.sync] }
}

/// The results of the whole measurement.
struct Results {
    var measurements: [Measurement] = []
    var limits: [MachineLimit] = []
    /// The backends that were left out, with reasons.
    var leftOut: [(backend: String, reason: String)] = []
    var facts: [MachineFact] = []

    /// The lengths of secrets, in the order of the arguments.
    var valueSizes: [Int] { unique(measurements.map(\.valueSize)) }
    var backends: [String] { unique(measurements.map(\.backend)) }

    /// Returns the measurements of one operation, by backend and by the number of items.
    func measurements(_ valueSize: Int, _ operation: Operation) -> [Measurement] {
        backends.flatMap { backend in
            measurements.filter {
                $0.backend == backend && $0.valueSize == valueSize && $0.operation == operation
            }
        }
    }

    func limit(_ kind: MachineLimit.Kind, _ valueSize: Int) -> MachineLimit? {
        limits.first { $0.kind == kind && $0.valueSize == valueSize }
    }

    /// Returns the note on `operation`, if a vault was measured.
    func note(on operation: Operation) -> String? {
        backends.contains(BackendName.file) || backends.contains(BackendName.agent) ? operation.note : nil
    }

    private func unique<Value: Equatable>(_ values: [Value]) -> [Value] {
        values.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }
}
