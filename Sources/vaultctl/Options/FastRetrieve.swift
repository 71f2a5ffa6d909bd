/// `retrieve` recognised from the raw arguments. Scripts call it in loops.
enum FastRetrieve {
    /// What `arguments` say if they are a `retrieve`; `nil` when ArgumentParser has to look.
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
