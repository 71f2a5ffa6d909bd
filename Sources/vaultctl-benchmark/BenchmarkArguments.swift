import SystemPackage

/// The arguments that `vaultctl benchmark` passes on after checking every value. An invalid value means that
/// another program started this one.
struct BenchmarkArguments {
    /// The backends that were named; empty for all that this machine has.
    var backends: [String] = []
    /// The numbers of items in the storages; empty for the default numbers.
    var items: [Int] = []
    /// The largest number of items in a keyring; `nil` for the default.
    var keyringItems: Int?
    /// The lengths of the secrets, in bytes.
    var valueSizes: [Int] = []
    /// The total time to measure.
    var time: Duration = .seconds(20)
    /// The number of calls of each kind that is enough; `nil` for as many as fit into the time.
    var samples: Int?
    /// The directory that gets the scratch directory.
    var directory: FilePath = "."
    /// The agent's program; `nil` when it is not installed.
    var agent: FilePath?
    /// The version of `vaultctl`.
    var version = ""
    var json = false
    /// The path of the report.
    var report: FilePath?

    /// Parses `words`; `nil` for anything that `vaultctl benchmark` does not pass on.
    init?(_ words: [String]) {
        var rest = words[...]
        while let word = rest.popFirst() {
            if word == "--json" {
                json = true
                continue
            }
            guard let value = rest.popFirst() else { return nil }
            switch word {
            case "--backend": backends.append(value)
            case "--items":
                guard let number = Int(value), number > 0 else { return nil }
                items.append(number)
            case "--keyring-items":
                guard let number = Int(value), number > 0 else { return nil }
                keyringItems = number
            case "--value-size":
                guard let number = Int(value), number >= 0 else { return nil }
                valueSizes.append(number)
            case "--milliseconds":
                guard let number = Int(value), number > 0 else { return nil }
                time = .milliseconds(number)
            case "--samples":
                guard let number = Int(value), number > 0 else { return nil }
                samples = number
            case "--directory": directory = FilePath(value)
            case "--agent": agent = FilePath(value)
            case "--version-of-vaultctl": version = value
            case "--report": report = FilePath(value)
            default: return nil
            }
        }
        guard !valueSizes.isEmpty, !version.isEmpty else { return nil }
    }

    /// The numbers of items in the storages by default.
    static let usualItems = [100, 1_000, 10_000]
    /// The largest number of items to measure a keyring with. A keyring writes all of its items again with
    /// each store.
    var mostItemsOfKeyring: Int { keyringItems ?? (items.isEmpty ? 1_000 : .max) }
}
