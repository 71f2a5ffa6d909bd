import TokenVaultAuth

/// The location options as raw text, not yet checked. The fast parser of `retrieve` and `token` and
/// ArgumentParser both produce these values, so tests can compare them.
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

/// The unlock options as raw text.
struct UnlockArguments: Equatable {
    var passphraseFile: String?
    var passphraseDescriptor: String?
    var keyFile: String?

    /// Whether an unlock method is on the command line, rather than in the environment or nowhere.
    var areGiven: Bool { passphraseFile != nil || passphraseDescriptor != nil || keyFile != nil }
}

/// The raw arguments of `retrieve`.
struct RetrieveArguments: Equatable, FastArguments {
    var key = ""
    var service: String?
    var location = LocationArguments()
    var unlock = UnlockArguments()
    var json = false
}

/// The raw arguments of `token`.
struct TokenArguments: Equatable, FastArguments {
    var profile = ""
    var minimumValidity: String?
    var renew = false
    /// Whether the ID token is printed, in place of the access token.
    var isOfUser = false
    var location = LocationArguments()
    var unlock = UnlockArguments()
    var json = false
    /// Whether the provider's error texts are shown.
    var isVerbose = false
    /// The service that the token is exchanged for; `nil` for no exchange.
    var exchange: ExchangeTarget?
    /// The request whose headers are printed instead of the token alone; `nil` for none.
    var headers: ProofTarget?
}
