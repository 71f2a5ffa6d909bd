import ProgramSupport
import TokenVault

/// The keyring of the user's session, as a backend and as a store of vault keys.
enum SystemKeyring {
    /// Whether a keyring exists. Waits for a few seconds at most and never prompts.
    static var isThere: Bool {
        let keyring = service(mayAsk: false, timeout: .seconds(3))
        return (try? keyring.storage(service: "vaultctl").blocking.lockState()) != nil
    }

    /// Returns the keyring. Calls end within `timeout`, prompts included; by default within 30 seconds, and a
    /// minute for each prompt.
    ///
    /// Without `mayAsk` there are no prompts. New items go to the keyring with the label `collection`, else
    /// to the default one. With `orOthers`, also reads items of other programs.
    static func service(
        mayAsk: Bool, timeout: Duration?, collection: String? = nil, orOthers: Bool = false
    ) -> SecretService {
        var configuration = SecretServiceConfiguration(readsOtherPrograms: orOthers)
        if let collection { configuration.collection = .named(collection) }
        if let timeout { configuration.timeout = timeout }
        configuration.prompting = mayAsk ? .allowed(within: timeout ?? .seconds(60)) : .never
        return SecretService(configuration: configuration) { isShown in
            // The prompt's window may be behind others, or on another screen.
            let line = ProgressLine()
            if isShown {
                line.show("Waiting for the keyring's prompt to be answered …")
            } else {
                line.erase()
            }
        }
    }
}
