/// The fast parser for `retrieve`, which scripts call in loops.
enum FastRetrieve {
    /// Parses a `retrieve`; `nil` when ArgumentParser must parse the arguments.
    static func parse(_ arguments: [String]) -> RetrieveArguments? {
        var result = RetrieveArguments()
        guard
            let key = FastOptions.operand(
                of: "retrieve", in: arguments, into: &result, flag: FastOptions.flag, option: option)
        else { return nil }
        result.key = key
        return result
    }

    private static func option(_ name: String) -> WritableKeyPath<RetrieveArguments, String?>? {
        name == "--service" ? \.service : FastOptions.option(name)
    }
}
