import SystemPackage

/// What `vaultctl benchmark` asks for. It has looked at every value: what does not fit was typed by somebody else.
struct BenchmarkArguments {
    /// The backends that were named; empty for those that this machine has.
    var backends: [String] = []
    /// How many items the storages have; empty for the usual numbers.
    var items: [Int] = []
    /// How many of them a keyring has at most; `nil` for what is usual.
    var keyringItems: Int?
    /// How long the secrets are, in bytes.
    var valueSizes: [Int] = []
    /// How long to measure, all together.
    var time: Duration = .seconds(20)
    /// How many calls of each kind are enough; `nil` for as many as there is time for.
    var samples: Int?
    /// Where the scratch directory is made.
    var directory: FilePath = "."
    /// The agent's program; `nil` when it is not installed.
    var agent: FilePath?
    /// The version of `vaultctl`.
    var version = ""
    var json = false
    /// Where the report goes.
    var report: FilePath?

    /// `nil` for anything that `vaultctl benchmark` does not say.
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

    /// How many items the storages have when nobody says.
    static let usualItems = [100, 1_000, 10_000]
    /// How many items a keyring is measured with at most: it writes all of them anew with each store.
    var mostItemsOfKeyring: Int { keyringItems ?? (items.isEmpty ? 1_000 : .max) }
}
