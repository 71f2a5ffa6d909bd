/// What the command line says about where and how, word by word and not yet looked at. Both parsers, the
/// fast one of `retrieve` and `token`, and ArgumentParser, end in these, so that they can be held against each other.
struct LocationArguments: Equatable {
    var vault: String?
    var backend: String?
    var collection: String?
    var stateDirectory: String?
    var timeout: String?
    var noInput = false
    var readOnly = false
    var noAgent = false
}

/// What the command line says about unlocking.
struct UnlockArguments: Equatable {
    var passphraseFile: String?
    var passphraseDescriptor: String?
    var keyFile: String?

    /// Whether an unlock method is on the command line, rather than in the environment or nowhere.
    var areGiven: Bool { passphraseFile != nil || passphraseDescriptor != nil || keyFile != nil }
}

/// `retrieve`, as given.
struct RetrieveArguments: Equatable, FastArguments {
    var key = ""
    var service: String?
    var location = LocationArguments()
    var unlock = UnlockArguments()
    var json = false
}

/// `token`, as given.
struct TokenArguments: Equatable, FastArguments {
    var profile = ""
    var minimumValidity: String?
    var renew = false
    var location = LocationArguments()
    var unlock = UnlockArguments()
    var json = false
}
