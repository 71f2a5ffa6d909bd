import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

/// Combines options, environment and defaults. An option takes precedence over the environment.
enum Settings {
    /// Returns the text of the option, else of the environment variable. An empty option is a mistake: an
    /// unset variable in a script must not silently select the default vault.
    static func text(
        _ option: String?, named name: String, environment variable: String?
    ) throws(CommandFailure) -> String? {
        if let option {
            guard !option.isEmpty else {
                throw .usage("\(name) is empty", "give it a value, or leave it out")
            }
            return option
        }
        guard let variable else { return nil }
        switch ProgramContext.variable(variable) {
        case .absent: return nil
        case .text(let text): return text
        case .notText: throw .usage("\(variable) is not UTF-8", "set it to UTF-8 text")
        }
    }

    static func path(
        _ option: String?, named name: String, environment variable: String?
    ) throws(CommandFailure) -> FilePath? {
        guard let text = try text(option, named: name, environment: variable) else { return nil }
        return try path(text, named: option == nil ? variable ?? name : name)
    }

    /// Returns the path in `text`. Rejects a path that begins with `~/`, which the shell did not expand and
    /// which would name a directory `~`.
    static func path(_ text: String, named name: String) throws(CommandFailure) -> FilePath {
        guard text != "~", !text.hasPrefix("~/") else {
            throw .usage(
                "\(name) begins with ~, which the shell did not replace",
                "write $HOME instead, or ./~ for a directory of that name")
        }
        return FilePath(text)
    }

    /// Returns the service: `--service`, `VAULTCTL_SERVICE` or `default`.
    static func service(_ option: String?) throws(CommandFailure) -> String {
        // An option can name the empty service.
        if option?.isEmpty == true { return "" }
        let service =
            try text(option, named: "--service", environment: "VAULTCTL_SERVICE") ?? "default"
        try calling { () throws(TokenStorageError) in
            try Validation(operation: "service", backend: "vaultctl").check(service: service)
        }
        return service
    }

    /// Returns a valid key, checked before anything is unlocked or asked.
    static func key(_ name: String) throws(CommandFailure) -> TokenKey {
        let key = TokenKey(name)
        try calling { () throws(TokenStorageError) in
            try Validation(operation: "key", backend: "vaultctl").check(key: key)
        }
        return key
    }

    /// Returns a whole number in `range`.
    static func number<Number: FixedWidthInteger>(
        _ text: String, named name: String, _ range: ClosedRange<Number>
    ) throws(CommandFailure) -> Number {
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Number(text),
            range.contains(number)
        else {
            throw .usage(
                "\(name) is not a number in its range",
                "give a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// Returns one of the few values of an option. Throws a usage failure that lists the values and suggests
    /// the most similar one. The failure does not repeat the argument.
    static func choice<Value: RawRepresentable<String> & CaseIterable>(
        _ text: String, _ mistake: String
    ) throws(CommandFailure) -> Value {
        if let value = Value(rawValue: text) { return value }
        let names = Value.allCases.map(\.rawValue)
        let all = names.dropLast().joined(separator: ", ") + " or \(names.last ?? "")"
        let meant = SimilarName.nearest(to: text, among: names).map { "did you mean \($0)? " } ?? ""
        throw .usage(mistake, "\(meant)use \(all)")
    }

    /// Returns a generation, in the form that `info` and `list --json` print.
    static func generation(
        _ text: String, named name: String = "--if-generation"
    ) throws(CommandFailure) -> Generation {
        let highest: UInt64 = (1 << 53) - 1
        return Generation(rawValue: try number(text, named: name, 0...highest))
    }

    /// Returns the limit on waiting; `nil` when none was given.
    static func timeout(_ text: String?) throws(CommandFailure) -> Duration? {
        guard let text else { return nil }
        guard let seconds = Double(text), seconds > 0, seconds <= 1e6 else {
            throw .usage("--timeout is not a number of seconds", "give a number above 0, such as 10 or 0.5")
        }
        return .milliseconds(max(1, Int64(seconds * 1_000)))
    }
}

/// The backend that a command uses.
enum Backend: String, CaseIterable {
    case file
    case secretService = "secret-service"
    case memory

    /// Creates the backend of `--backend` or `VAULTCTL_BACKEND`; `file` by default.
    init(option: String?) throws(CommandFailure) {
        let name = try Settings.text(option, named: "--backend", environment: "VAULTCTL_BACKEND") ?? "file"
        self = try Settings.choice(name, "there is no such backend")
    }
}
