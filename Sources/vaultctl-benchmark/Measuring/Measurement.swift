/// What is timed.
enum Operation: String, CaseIterable {
    case store, retrieve, delete

    /// What a person would otherwise take for a mistake, of a vault's file.
    var note: String? {
        guard self == .delete else { return nil }
        return
            "Deleting from a small vault, of up to a mebibyte, writes the rest into a new file, so that what was deleted is gone "
            + "at once; from a large one it overwrites that."
    }
}

/// The latencies of one operation of one backend, with so many items in it.
struct Measurement {
    let backend: String
    let operation: Operation
    let items: Int
    let valueSize: Int
    let latencies: Latencies
}

/// What this machine takes for the one thing that an operation cannot do without.
struct MachineLimit {
    enum Kind: String, CaseIterable {
        /// `pwrite` and `fdatasync` of as many bytes as a store writes.
        case sync = "fdatasync"
        /// Opening a sealed secret.
        case opening = "AEAD"
        /// Asking another process for as many bytes.
        case echo
    }

    let kind: Kind
    /// How many bytes were written, opened or answered.
    let bytes: Int
    let valueSize: Int
    let latencies: Latencies

    /// What was done, for people.
    var title: String {
        switch kind {
        case .sync: "pwrite and fdatasync of \(grouped(bytes)) bytes"
        case .opening: "XChaCha20-Poly1305 of \(grouped(bytes)) bytes"
        case .echo: "echo of \(grouped(bytes)) bytes through a Unix socket"
        }
    }
}

extension Measurement {
    /// What the operation cannot be faster than; `nil` when nothing of the kind is known.
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
    /// The limits that are shown with it.
    var limits: [MachineLimit.Kind] { self == .retrieve ? [.opening, .echo] : [.sync] }
}

/// Everything that was found out.
struct Results {
    var measurements: [Measurement] = []
    var limits: [MachineLimit] = []
    /// Which backends were left out, and why.
    var leftOut: [(backend: String, reason: String)] = []
    var facts: [MachineFact] = []

    /// The lengths of secrets, in the order in which they were asked for.
    var valueSizes: [Int] { unique(measurements.map(\.valueSize)) }
    var backends: [String] { unique(measurements.map(\.backend)) }

    /// Those of one operation, backend by backend, and by the number of items.
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

    /// What there is to know of `operation` where a vault's file was measured.
    func note(on operation: Operation) -> String? {
        backends.contains(BackendName.file) || backends.contains(BackendName.agent) ? operation.note : nil
    }

    private func unique<Value: Equatable>(_ values: [Value]) -> [Value] {
        values.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }
}
