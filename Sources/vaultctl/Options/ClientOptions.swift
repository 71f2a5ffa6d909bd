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
            "The file of the client's private key (PEM), for a client that signs assertions.",
            valueName: "path"),
        completion: .file())
    var clientKeyFile: String?
    @Option(
        name: .customLong("client-key-id"),
        help: ArgumentHelp("The name of that key at the provider.", valueName: "id"))
    var clientKeyID: String?
    @Option(
        help: ArgumentHelp(
            "The team of that key at Apple, which takes a secret that the key signs.", valueName: "id"))
    var clientTeam: String?
    @Option(
        help: ArgumentHelp(
            "How the client authenticates, if not in the usual way of the provider: \(Self.methods.joined(separator: ", ")).",
            valueName: "method"),
        completion: .list(Self.methods))
    var clientAuthentication: String?

    static let methods = [ClientAuthenticationMethod.basic, .post, .key, .none].map(\.rawValue)
}

/// The checked values of ``ClientOptions``.
struct ClientChoice {
    private let secretSource: ClientSecretSource
    private let keyPath: FilePath?
    private let keyID: String?
    private let team: String?
    private let method: ClientAuthenticationMethod?

    /// Checks `options`. Throws a usage failure. Reads nothing yet.
    init(_ options: ClientOptions) throws(CommandFailure) {
        secretSource = try ClientSecretSource(
            file: options.clientSecretFile, descriptor: options.clientSecretDescriptor)
        keyPath = try Settings.path(options.clientKeyFile, named: "--client-key-file", environment: nil)
        for (option, value) in [
            ("--client-key-id", options.clientKeyID), ("--client-team", options.clientTeam),
        ] where value.map({ !Self.isName($0) }) ?? false {
            throw .usage("\(option) is no name of letters and digits", "copy it from the provider's page")
        }
        keyID = options.clientKeyID
        team = options.clientTeam
        method = try options.clientAuthentication.map { (name) throws(CommandFailure) in
            guard let method = ClientAuthenticationMethod(rawValue: name), method != .apple else {
                throw .usage(
                    "there is no such --client-authentication",
                    "give one of \(ClientOptions.methods.joined(separator: ", "))")
            }
            return method
        }
        guard secretSource.isNone || keyPath == nil else {
            throw .usage("the client has both a secret and a key", "leave the one or the other out")
        }
    }

    /// What was read from the files.
    struct Content {
        let secret: Secret?
        let key: Secret?
    }

    /// Reads the secret or the key. Throws the failure to read it.
    func read(_ console: Console) throws(CommandFailure) -> Content {
        let key = try keyPath.map { (path) throws(CommandFailure) in try Self.key(path, console) }
        return Content(secret: try secretSource.read(console), key: key)
    }

    /// Sets how the client of `settings` authenticates: as chosen, else as `known` does. Throws a usage failure
    /// when a part is missing.
    func apply(
        _ content: Content, to settings: inout SignInSettings, known: SignInSettings?
    ) throws(CommandFailure) {
        if method == ClientAuthenticationMethod.none {
            guard content.secret == nil, content.key == nil else {
                throw .usage(
                    "--client-authentication none, and a secret or a key", "leave the one or the other out")
            }
            return
        }
        var identity = content.secret == nil ? known?.clientIdentity ?? ClientIdentity() : ClientIdentity()
        settings.clientSecret = known?.clientSecret
        if let secret = content.secret { settings.clientSecret = secret.unprotectedText() }
        if let key = content.key {
            settings.clientSecret = nil
            identity = ClientIdentity()
            identity.key = key.unprotectedText()
        }
        identity.keyID = keyID ?? identity.keyID
        identity.team = team ?? identity.team
        identity.method = method ?? identity.method
        try Self.check(identity, settings.clientSecret)
        settings.clientIdentity = identity == ClientIdentity() ? nil : identity
    }

    private static func check(_ identity: ClientIdentity, _ secret: String?) throws(CommandFailure) {
        let needsKey = identity.method == .key || identity.keyID != nil || identity.team != nil
        guard !needsKey || identity.key != nil else {
            throw .usage("the client's key is missing", "give --client-key-file")
        }
        guard identity.team == nil || identity.keyID != nil else {
            throw .usage("--client-team needs --client-key-id", "add it, as Apple's page shows it")
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
            let input = try InputSource.file(path)
            if input.isReadableByOthers {
                console.note("others can read the client's key file: chmod 600 it")
            }
            var bytes = try input.readAll(limit: 16 << 10, deadline: console.deadline)
            defer { SmallFile.wipe(&bytes) }
            key = Secret(bytes)
        } catch {
            throw CommandFailure(error, "the client's key file", "check its path and mode")
        }
        guard let text = key.unprotectedText(), text.contains("PRIVATE KEY-----") else {
            throw .usage(
                "the client's key file has no private key in PEM",
                "it has to begin with -----BEGIN PRIVATE KEY-----")
        }
        return key
    }
}
