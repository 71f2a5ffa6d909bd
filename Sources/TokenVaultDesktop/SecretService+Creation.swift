public import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

extension SecretService {
    /// A keyring that ``createKeyring(label:passphrase:)`` made.
    public struct CreatedKeyring: Sendable, Equatable {
        /// The keyring's label.
        public let label: String
        /// Whether the keyring is now the default one.
        public let isDefault: Bool
    }

    /// Creates a keyring, unlocked. It becomes the default one when there is none.
    ///
    /// With `passphrase` there is no prompt. That is for machines without a desktop, and needs a service that
    /// supports it (gnome-keyring); otherwise the call throws `unavailable`. Without it the service prompts
    /// the user for a password, if ``SecretServiceConfiguration/prompting`` allows that; otherwise the call
    /// throws `locked`.
    ///
    /// Throws `alreadyExists` when there is a keyring with that label, or without a `label` a default one.
    /// Throws `invalidArgument` for an empty `passphrase`, which would encrypt nothing. Also throws
    /// `invalidArgument` for a label that is empty or has control characters.
    @discardableResult
    public func createKeyring(
        label: String? = nil, passphrase: Secret? = nil
    ) async throws(TokenStorageError) -> CreatedKeyring {
        try await run { (call) throws(TokenStorageError) in
            try self.createKeyring(label, passphrase, for: call)
        }
    }

    /// Creates a keyring in the same way, for code that cannot wait.
    @discardableResult
    public func createKeyringBlocking(
        label: String? = nil, passphrase: Secret? = nil
    ) throws(TokenStorageError) -> CreatedKeyring {
        try createKeyring(label, passphrase, for: BusCall(timeout: configuration.timeout))
    }

    private func createKeyring(
        _ label: String?, _ passphrase: Secret?, for call: BusCall
    ) throws(TokenStorageError) -> CreatedKeyring {
        try during("create") { () throws(TokenStorageError) in
            if let passphrase, passphrase.isEmpty {
                throw .secretService(.invalidArgument, .limit(.emptyKeyringPassphrase))
            }
            guard label.map(Self.isLabel) ?? true else {
                throw .secretService(.invalidArgument, .limit(.keyringLabel))
            }
            return try withKeyring(call, mayAsk: false) { (access) throws(TokenStorageError) in
                try access.asWriter { () throws(TokenStorageError) in
                    try access.createKeyring(label, passphrase)
                }
            }
        }
    }

    private static func isLabel(_ label: String) -> Bool {
        !label.isEmpty && NameRules.fits(label) && !NameRules.hasControlCharacters(label)
    }
}

extension KeyringAccess {
    fileprivate func createKeyring(
        _ label: String?, _ passphrase: Secret?
    ) throws(TokenStorageError) -> SecretService.CreatedKeyring {
        let finder = CollectionFinder(service: service, link: link, call: call, mayCreate: false)
        let hasDefault = try finder.defaultCollection() != nil
        if let label {
            guard try finder.collection(labelled: label) == nil else {
                throw .secretService(.alreadyExists, .exists(.keyringOfThatName))
            }
        } else if hasDefault {
            throw .secretService(.alreadyExists, .exists(.defaultKeyring))
        }
        let made = SecretService.CreatedKeyring(
            label: label ?? CollectionFinder.defaultLabel, isDefault: !hasDefault)
        if let passphrase {
            let path = try create(made.label, passphrase)
            if made.isDefault { try setDefault(path) }
        } else {
            _ = try finder.create(label: label, isDefault: made.isDefault)
        }
        link.forgetCollection()
        return made
    }

    /// Creates a keyring with gnome-keyring's own call: the standard has no call without a prompt.
    private func create(_ label: String, _ passphrase: Secret) throws(TokenStorageError) -> String {
        let properties = link.make.properties([("\(BusName.collection).Label", link.make.text(label))])
        let secret = try session.encrypt(passphrase.bytes, contentType: WireEncoding.text.contentType)
        let method = BusMethod(
            path: BusName.secretsPath, interface: BusName.gnomeKeyring, name: "CreateWithMasterPassword",
            body: link.make.tuple([properties, secret]))
        let reply = try ask([method])[0]
        if case .error(let name, let text) = reply, BusErrorName.isNoMethod(name) {
            throw .secretService(.unavailable, .onlyPromptedCreation("\(name): \(text)"))
        }
        let path = try KeyringLink.values(reply, "(o)")[0].text
        guard let path, path != "/" else { throw KeyringLink.unexpected }
        return path
    }

    private func setDefault(_ path: String) throws(TokenStorageError) {
        let method = BusMethod(
            path: BusName.secretsPath, interface: BusName.service, name: "SetAlias",
            body: link.make.tuple([link.make.text("default"), link.make.path(path)]))
        _ = try KeyringLink.values(try ask([method])[0], "()")
    }
}
