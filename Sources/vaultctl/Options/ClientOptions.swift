import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

/// The options of `vaultctl login` for the way that the client authenticates.
struct ClientOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The file whose first line is the client's secret.", valueName: "path"),
        completion: .file())
    var clientSecretFile: String?
    @Option(
        name: .customLong("client-secret-fd"),
        help: ArgumentHelp(
            "The open descriptor whose first line is the client's secret.", valueName: "number"))
    var clientSecretDescriptor: String?
    @Option(
        help: ArgumentHelp(
            "The file of the client's private key in PEM: RSA, P-256, P-384 or P-521. The client signs assertions with the key (RFC 7523). The profile keeps the key, until a secret or another key replaces it.",
            valueName: "path"),
        completion: .file())
    var clientKeyFile: String?
    @Option(
        name: .customLong("client-key-id"),
        help: ArgumentHelp(
            "The key's name at the provider (kid). An empty value removes the stored one.", valueName: "id"))
    var clientKeyID: String?
    @Option(
        help: ArgumentHelp(
            "The key's team at Apple. The client then signs a new client secret for each request. An empty value removes the stored one.",
            valueName: "id"))
    var clientTeam: String?
    @Option(
        help: ArgumentHelp(
            "How the client authenticates: \(Self.methods.joined(separator: ", ")). The value none removes the stored secret or key. By default, the provider's metadata decides for a secret, and a key signs assertions.",
            valueName: "method"),
        completion: .list(Self.methods))
    var clientAuthentication: String?

    static let methods = [ClientAuthenticationMethod.basic, .post, .privateKeyJWT, .none].map(\.rawValue)
}

/// The checked values of ``ClientOptions``.
struct ClientChoice {
    private let secretSource: ClientSecretSource
    private let keyPath: FilePath?
    private let keyID: String?
    private let teamID: String?
    private let method: ClientAuthenticationMethod?

    /// Checks `options`. Throws a usage failure. Reads nothing yet.
    init(_ options: ClientOptions) throws(CommandFailure) {
        secretSource = try ClientSecretSource(
            file: options.clientSecretFile, descriptor: options.clientSecretDescriptor)
        keyPath = try Settings.path(options.clientKeyFile, named: "--client-key-file", environment: nil)
        for (option, value) in [
            ("--client-key-id", options.clientKeyID), ("--client-team", options.clientTeam),
        ] where value.map({ !$0.isEmpty && !Self.isName($0) }) ?? false {
            throw .usage("\(option) is not visible ASCII without spaces", "copy it from the provider's page")
        }
        keyID = options.clientKeyID
        teamID = options.clientTeam
        method = try options.clientAuthentication.map { (name) throws(CommandFailure) in
            guard let method = ClientAuthenticationMethod(rawValue: name), method != .appleSecret else {
                throw .usage(
                    "unknown --client-authentication",
                    "give one of \(ClientOptions.methods.joined(separator: ", "))")
            }
            return method
        }
        guard
            method != ClientAuthenticationMethod.none
                || secretSource.isNone && keyPath == nil && keyID == nil && teamID == nil
        else {
            throw .usage(
                "--client-authentication none excludes a secret and a key", "remove one of them")
        }
        guard method == nil || teamID?.isEmpty ?? true else {
            throw .usage("--client-team excludes --client-authentication", "remove one of them")
        }
        guard secretSource.isNone || keyPath == nil else {
            throw .usage("the client has both a secret and a key", "remove one of them")
        }
    }

    /// The secret and the key from the files.
    struct Credentials {
        let secret: Secret?
        let key: Secret?
    }

    /// Reads the secret or the key. Throws the failure to read it.
    func read(_ console: Console) throws(CommandFailure) -> Credentials {
        let key = try keyPath.map { (path) throws(CommandFailure) in try Self.key(path, console) }
        return Credentials(secret: try secretSource.read(console), key: key)
    }

    /// Sets the client's authentication in `settings`: the chosen values, else those of `known`. Throws a usage
    /// failure when a part is missing.
    func apply(
        _ credentials: Credentials, to settings: inout SignInSettings, known: SignInSettings?
    ) throws(CommandFailure) {
        if method == ClientAuthenticationMethod.none {
            return
        }
        var identity = known?.clientIdentity ?? ClientIdentity()
        settings.clientSecret = known?.clientSecret
        if let secret = credentials.secret {
            settings.clientSecret = secret.unprotectedText()
            // The method of another secret stays.
            if identity.key != nil { identity = ClientIdentity() }
        }
        if let key = credentials.key {
            settings.clientSecret = nil
            if identity.key == nil { identity = ClientIdentity() }
            guard identity.keyID == nil || keyID != nil else {
                throw .usage("the new key needs its own name at the provider", "give --client-key-id")
            }
            identity.key = key.unprotectedText()
        }
        // An empty value removes a stored one.
        if let keyID { identity.keyID = keyID.isEmpty ? nil : keyID }
        if let teamID {
            identity.teamID = teamID.isEmpty ? nil : teamID
            // The key signs Apple's secret then.
            identity.method = nil
        }
        identity.method = method ?? identity.method
        try Self.check(identity, settings.clientSecret)
        settings.clientIdentity = identity == ClientIdentity() ? nil : identity
    }

    private static func check(_ identity: ClientIdentity, _ secret: String?) throws(CommandFailure) {
        let needsKey = identity.method == .privateKeyJWT || identity.keyID != nil || identity.teamID != nil
        guard !needsKey || identity.key != nil else {
            throw .usage("the client's key is missing", "give --client-key-file")
        }
        guard identity.teamID == nil || identity.keyID != nil else {
            throw .usage("--client-team needs --client-key-id", "copy the key's ID from Apple's page")
        }
        guard identity.method != .basic && identity.method != .post || secret != nil else {
            throw .usage("the client's secret is missing", "give --client-secret-file")
        }
    }

    private static func isName(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
    }

    private static func key(_ path: FilePath, _ console: Console) throws(CommandFailure) -> Secret {
        let key: Secret
        do throws(SystemFailure) {
            let input = try console.secretFile(path, "the client's key file")
            var bytes = try input.readAll(limit: 16 << 10, deadline: console.deadline)
            defer { SmallFile.wipe(&bytes) }
            key = Secret(bytes)
        } catch {
            throw CommandFailure(error, "the client's key file", "check its path and mode")
        }
        guard key.unprotectedText()?.contains("ENCRYPTED") != true else {
            throw .usage(
                "the client's key file is encrypted", "decrypt it: openssl pkey -in FILE -out key.pem")
        }
        guard let text = key.unprotectedText(), text.contains("PRIVATE") else {
            throw .usage(
                "the client's key file has no private key in PEM", "give an RSA or EC private key in PEM")
        }
        return key
    }
}
