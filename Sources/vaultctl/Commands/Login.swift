import ArgumentParser
import OAuthWire
import ProgramSupport
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

struct Login: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sign in at an OAuth or OpenID Connect provider, once.",
        discussion: """
            The browser is shown the provider's page, or with --device any other device. What the provider gives is kept in \
            the vault under the profile's name, and \"vaultctl token\" prints an access token of it, renewed when it is due. \
            The options are kept as well: later, the name alone signs in again, and the provider is told that the session \
            before is over. Who signs in is waited for 5 minutes, with --device 30, or for --timeout.

            At the provider, register a public (native) client for the authorization code with PKCE; for --device one that \
            may use the device grant. Its redirect URI is http://127.0.0.1/callback/ID.EXAMPLE.COM, which is the issuer without \
            https://, on any port. It is http://127.0.0.1/callback where the provider names itself in its answers (RFC 9207). For \
            another address on this machine, give --redirect-uri.

            Examples:
              vaultctl login work --issuer https://id.example.com --client-id my-tool \\
                --scope openid --scope offline_access
              vaultctl login web --issuer https://id.example.com --client-id my-tool \\
                --redirect-uri http://localhost:8400/signed-in
              vaultctl login server --issuer https://id.example.com --client-id my-tool \\
                --device
              vaultctl login work
              token=$(vaultctl token work) \\
                && curl -H "Authorization: Bearer $token" https://api.example.com/
            """)

    @Argument(help: "A name for where and as whom: work, github.") var profile: String
    @Option(help: ArgumentHelp("The provider: its issuer address.", valueName: "url")) var issuer: String?
    @Option(
        name: .customLong("client-id"),
        help: ArgumentHelp("The name that the provider gave this client.", valueName: "id"))
    var clientID: String?
    @Option(
        help: ArgumentHelp("A scope to ask for. May be given several times.", valueName: "scope"))
    var scope: [String] = []
    @Option(
        help: ArgumentHelp(
            "A parameter of the provider's own, such as prompt=consent. May be given several times.",
            valueName: "name=value"))
    var parameter: [String] = []
    @Option(
        help: ArgumentHelp("The API that the token is for, as some providers call it.", valueName: "name"))
    var audience: String?
    @Option(
        help: ArgumentHelp(
            "The address of an API that the token is for (RFC 8707). May be given several times.",
            valueName: "url"))
    var resource: [String] = []
    @Flag(help: "Show an address and a code for another device, and start no browser.") var device = false
    @Flag(
        name: .customLong("no-browser"),
        help: "Only show the address, for a browser on this machine that is opened by hand.")
    var noBrowser = false
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
        name: .customLong("redirect-uri"),
        help: ArgumentHelp(
            "The address on this machine that the browser comes back to, as registered at the provider.",
            valueName: "url"))
    var redirectURI: String?
    @Option(
        help: ArgumentHelp(
            "The port that the browser comes back to, where the provider takes only one.",
            valueName: "number"))
    var redirectPort: String?
    @Option(
        help: ArgumentHelp(
            "Another address than the issuer's that you may be sent to. May be given several times.",
            valueName: "url"))
    var allowOrigin: [String] = []
    @Option(
        help: ArgumentHelp(
            "When the session can be read, as for \"vaultctl store\"; after-first-unlock-this-device-only for jobs that run "
                + "while the vault is locked.", valueName: "policy"),
        completion: .list(ItemDetails.policyNames))
    var policy: String?
    @Flag(
        inversion: .prefixedNo,
        help: ArgumentHelp(
            "Revoke the previous session at the provider. --no-revoke is stored in the profile: some providers would end the "
                + "new session too."))
    var revoke: Bool?
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let secretSource = try ClientSecretSource(file: clientSecretFile, descriptor: clientSecretDescriptor)
        let session = try Session(console, location.arguments, unlock.arguments)
        let name = try ProfileStore.name(profile)
        let policy = try ItemDetails.policy(policy)
        let redirect = try check()
        let parameters = try parameters()
        let program = try OAuthProgram.find()
        let secret = try secretSource.read(console)
        let place = try session.profileStore()
        // Without an issuer or a client ID, the profile names the provider.
        let isWhole = issuer != nil && clientID != nil
        let stored = try reading(name) { () throws(TokenError) in try place.profile(name) }
        let known = isWhole ? stored?.content : try stored?.profile
        let settings = try settings(known, secret, redirect, parameters)
        // This is the last check that can prevent the sign-in. The earlier checks concern the user's
        // arguments.
        let isNameEnough = issuer == nil && clientID == nil
        if !settings.isDevice, !noBrowser, Browser.find(for: "") == nil {
            throw .noBrowser(isNameEnough ? name : nil)
        }
        let wait = Duration.seconds(settings.isDevice ? 1_800 : 300)
        let limit = min(wait + .seconds(1), console.deadline?.remaining ?? wait + .seconds(1))
        let conversation = SignInConversation(
            console: console, profile: isNameEnough ? name : nil, opensBrowser: !noBrowser,
            limit: WorkerRequest.seconds(within: limit))
        let queue = ForegroundQueue<SignInConversation>()
        let signals = SignalGuard { queue.cancel() }
        let provider = WorkerProvider(program: .success(program), signals: signals) { reply in
            queue.ask { $0.show(reply) }
        }
        var signIn = SignInTransaction(provider, place, name)
        signIn.policy = policy
        signIn.deadline = console.deadline
        signIn.entered = { signals.note($0) }
        signIn.waiting = { error in queue.post { $0.tellOfWaiting(error, name) } }
        let signedIn = try signals.during { () throws(CommandFailure) in
            let outcome = queue.run(conversation) { [signIn] in await signIn.run(settings, within: limit) }
            return try SignInReport(name, conversation, signals).signedIn(outcome)
        }
        if settings.scopes.contains("openid"), signedIn.tokens.idToken == nil {
            console.note("the provider gave no ID token: it is not known who signed in")
        }
        if signedIn.tokens.refreshSecret == nil {
            console.note(
                "the provider gave nothing to renew the token with: the session ends with it; many providers do with --scope "
                    + "offline_access")
        }
        console.remark(Self.greeting(signedIn.user))
        return .done
    }

    /// The address that the browser is to return to, as far as options say.
    private struct Redirect {
        var address: RedirectAddress?
        var port: Int?
        var isGiven: Bool { address != nil || port != nil }
    }

    /// Checks the arguments, before anything is opened or asked. Returns the redirection.
    private func check() throws(CommandFailure) -> Redirect {
        guard !location.readOnly else { throw .readOnlySignIn }
        guard !device || !noBrowser && redirectPort == nil && redirectURI == nil else {
            throw .usage("--device takes no browser and no port", "leave the one or the other out")
        }
        guard !scope.contains(where: { $0.contains(" ") }) else {
            throw .usage(
                "--scope has more than one scope", "give each its own, as in --scope openid --scope read")
        }
        for (option, value) in [("--issuer", issuer), ("--client-id", clientID)] where value?.isEmpty == true
        {
            throw .usage("\(option) is empty", "give it a value, or leave it out")
        }
        if let issuer { try Self.check(issuer: issuer) }
        for text in allowOrigin {
            guard let origin = RequestOrigin(address: text), origin.keepsSecrets, origin.text == text else {
                throw .usage("--allow-origin is no origin", "give it as in https://login.example.com")
            }
        }
        var redirect = Redirect()
        redirect.port = try redirectPort.map { (text) throws(CommandFailure) in
            try Settings.number(text, named: "--redirect-port", 0...65_535)
        }
        redirect.address = try redirectURI.map(Self.redirect)
        guard redirect.port == nil || (redirect.address?.port ?? 0) == 0 else {
            throw .usage("--redirect-uri has a port already", "leave --redirect-port out")
        }
        return redirect
    }

    private static func redirect(_ text: String) throws(CommandFailure) -> RedirectAddress {
        guard let address = RedirectAddress(text) else {
            throw .usage(
                "--redirect-uri is not an address of this machine that can be listened on",
                "give it as in http://127.0.0.1/callback, with 127.0.0.1, [::1] or localhost")
        }
        return address
    }

    private static func check(issuer: String) throws(CommandFailure) {
        guard issuer.contains("://") else {
            throw .usage("--issuer has no https:// at its beginning", "give the whole address")
        }
        guard let origin = RequestOrigin(address: issuer), !issuer.contains("?") else {
            throw .usage(
                "--issuer is no address of a provider",
                "give it as in https://id.example.com, without a query")
        }
        guard !issuer.contains("/.well-known/") else {
            throw .usage(
                "--issuer is where the provider's metadata is, not the provider",
                "leave /.well-known/ and what follows out")
        }
        guard origin.keepsSecrets else {
            throw .usage("--issuer is http, which everybody on the way can read", "give its https address")
        }
    }

    /// Returns the provider's own parameters, by name. Throws a usage failure.
    private func parameters() throws(CommandFailure) -> [String: String] {
        var parameters: [String: String] = [:]
        for pair in parameter + (audience.map { ["audience=\($0)"] } ?? []) {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else {
                throw .usage("a --parameter has no equals sign", "write it as NAME=VALUE")
            }
            let name = String(parts[0])
            guard SignInSettings.isParameter(name) else {
                throw .usage(
                    "a --parameter has a name that cannot be given",
                    "use the option for it, such as --scope or --resource, or leave it out")
            }
            guard parameters.updateValue(String(parts[1]), forKey: name) == nil else {
                throw .usage("a --parameter is given twice", "give each name once")
            }
        }
        guard resource.allSatisfy(SignInSettings.isResource) else {
            throw .usage("--resource is no address", "give it as in https://api.example.com/")
        }
        return parameters
    }

    /// Returns the settings: the values of the options, else those of the profile.
    private func settings(
        _ known: Profile?, _ secret: Secret?, _ redirect: Redirect, _ parameters: [String: String]
    ) throws(CommandFailure) -> SignInSettings {
        guard let issuer = issuer ?? known?.issuer, let clientID = clientID ?? known?.clientID else {
            if known == nil, issuer == nil, clientID == nil { throw .noProfile }
            throw .usage("the first sign-in needs both --issuer and --client-id", "give them")
        }
        // Nothing of another client or provider is kept, in particular not its secret.
        let known = known.flatMap {
            $0.source == TokenSource(issuer: issuer, clientID: clientID) ? $0 : nil
        }
        // Options that name both issuer and client also determine the sign-in method.
        let isWhole = self.issuer != nil && self.clientID != nil
        var settings = SignInSettings(issuer: issuer, clientID: clientID)
        settings.isDevice = device || (!isWhole && !noBrowser && !redirect.isGiven && known?.device ?? false)
        settings.scopes = scope.isEmpty ? known?.scopes ?? [] : scope
        settings.redirect = redirect.address ?? known?.redirect
        settings.redirectPort = redirect.port ?? (redirect.address == nil ? known?.redirectPort : nil) ?? 0
        if let port = redirect.port { settings.redirect?.port = port }
        settings.allowedOrigins = allowOrigin.isEmpty ? known?.allowedOrigins ?? [] : allowOrigin
        settings.parameters = parameters.isEmpty ? known?.parameters ?? [:] : parameters
        settings.resources = resource.isEmpty ? known?.resources ?? [] : resource
        settings.keepsPrevious = revoke.map { !$0 } ?? known?.keepsPrevious ?? false
        settings.clientSecret = secret?.unprotectedText() ?? known?.clientSecret
        return settings
    }

    private static func greeting(_ user: AuthUser?) -> String {
        guard let name = user?.email ?? user?.name ?? user?.identifier, name.utf8.count <= 255 else {
            return "Signed in."
        }
        return "Signed in as \(name)."
    }
}

extension CommandFailure {
    /// A signal came. The signal takes effect before this failure is printed.
    static let interrupted = CommandFailure(.failure, "ended by a signal", "try again")

    /// The failure of a sign-in or sign-out under `--read-only`.
    static let readOnlySignIn = CommandFailure.usage(
        "--read-only, and signing in or out changes the vault", "leave it out")
}
