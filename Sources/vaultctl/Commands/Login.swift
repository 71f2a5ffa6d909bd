import ArgumentParser
import OAuthWire
import ProgramSupport
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

struct Login: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Sign in at an OAuth or OpenID Connect provider, and keep the session.",
            description: """
                The command opens the provider's page in a browser on this machine, or with --device on any other device. The \
                vault keeps the session under the profile's name, and the profile keeps the options. Later, the profile's name is enough to sign in again, and "vaultctl token" prints an access token. The first sign-in needs --client-id, and --issuer or \
                --provider. Another provider replaces every option of the profile. Another client of the same provider keeps only the options about the provider.

                At the provider, register a public (native) client for the authorization code with PKCE. For --device, also \
                allow the device grant. Register the redirect URI http://127.0.0.1/issuer/ID.EXAMPLE.COM for any port. The last part is the issuer without \
                https:// and without a slash at the end. A separate address for each issuer keeps a provider from receiving the code of another provider.

                If the provider's metadata has "authorization_response_iss_parameter_supported": true, register \
                http://127.0.0.1/callback instead. A profile of an earlier version needs that address too. To use another address \
                on this machine, give --redirect-uri.

                The previous session is revoked at the provider, unless --no-revoke is given or both sessions share tokens. Standard error says if that fails, or if the \
                previous session is of another provider.

                The command waits 5 minutes for the user, or 30 with --device, and never longer than --timeout. After a mistake, \
                such as an unknown client, the browser stays at the provider's page: end the wait with Ctrl-C. With --dpop, the \
                sign-in fails if the provider does not bind the tokens.
                """,
            examples: [
                """
                vaultctl login work --issuer https://id.example.com --client-id my-tool \\
                  --scope openid --scope offline_access
                """,
                "vaultctl login github --provider github --client-id my-app --device",
                """
                vaultctl login web --issuer https://id.example.com --client-id my-tool \\
                  --redirect-uri http://localhost:8400/signed-in
                """,
                """
                vaultctl login job --issuer https://id.example.com --client-id my-job \\
                  --client-secret-file secret.txt --client-credentials
                """,
                "vaultctl login work",
            ],
            statuses: [
                .failure: "A signal ended the sign-in, or another failure.",
                .notFound: "The name alone was given, and there is no such profile.",
                .refused:
                    "The provider refused the sign-in, its answer is not accepted, or the passphrase or key is wrong.",
                .wrongDevice: "The profile belongs to another device.",
                .unavailable:
                    "The provider, its metadata, a browser, vaultctl-oauth or the vault is not available or not usable.",
                .conflict: "Other programs keep changing the profile, or the same vault is at two paths.",
                .timedOut:
                    "No user signed in before the end of the wait, or the provider or the vault did not answer in time.",
            ],
            standard: .items))

    @Argument(
        help: "A name for the provider and the user, such as work or github.",
        completion: NameCompletion.profiles) var profile: String
    @OptionGroup(title: "Provider and client") var provider: ProviderOptions
    @OptionGroup(title: "Client authentication") var client: ClientOptions
    @OptionGroup(title: "Request") var request: SignInOptions
    @Flag(
        help:
            "Show an address and a code for another device, and start no browser. The profile keeps the choice, until options name both the client and the provider again."
    ) var device = false
    @Flag(help: "Get tokens for the client itself, without a user. The client needs a secret or a key.")
    var clientCredentials =
        false
    @Flag(
        name: .customLong("no-browser"),
        help:
            "Print the address, and start no browser. If the browser is on another machine, paste the address of its last page, which does not load."
    )
    var noBrowser = false
    @Option(
        help: ArgumentHelp(
            "When the session can be read, as for \"vaultctl store\". A job that runs while the vault is locked needs after-first-unlock-this-device-only.",
            valueName: "policy"),
        completion: .list(ItemDetails.policyNames))
    var policy: String?
    @Flag(
        inversion: .prefixedNo,
        help: ArgumentHelp(
            "Revoke the previous session at the provider (the default), or keep it. The profile keeps the choice. --no-revoke is for a provider that would also end the new session."
        ))
    var revoke: Bool?
    @Flag(
        name: .customLong("dpop"), inversion: .prefixedNo,
        help: ArgumentHelp(
            "Bind the tokens to a new key of this session (RFC 9449), so that a stolen token alone is worthless. The profile keeps the choice."
        )
    )
    var usesDPoP: Bool?
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var output: VerboseOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let client = try ClientChoice(self.client)
        let session = try Session(console, location.arguments, unlock.arguments)
        let name = try ProfileStore.name(profile)
        let policy = try ItemDetails.policy(policy)
        let choice = try SignInChoice(request)
        try check(choice)
        let provider = try ProviderChoice(self.provider)
        let program = try OAuthProgram.find()
        let credentials = try client.read(console)
        let place = try session.profileStore()
        // Without an issuer or a client ID, the profile names the provider.
        let stored = try reading(name) { () throws(TokenError) in try place.profile(name) }
        let known = provider.isWhole ? stored?.content : try stored?.profile
        let settings = try settings(provider, choice, client, credentials, known?.settings)
        if let redirect = choice.redirect,
            let other = try place.profile(sharing: redirect, ofOtherThan: settings.issuer)
        {
            console.note(
                "the profile \(other) of another provider has the same redirect URI, so a dishonest provider could get the other's code; give each its own path"
            )
        }
        // This is the last check that can prevent the sign-in. The earlier checks concern the user's
        // arguments.
        let isNameEnough = provider.isNone
        if settings.flow == .browser, !noBrowser, Browser.find(for: "") == nil {
            throw .noBrowser(isNameEnough ? name : nil)
        }
        let wait: Duration =
            switch settings.flow {
            case .browser: .seconds(300)
            case .device: .seconds(1_800)
            case .clientCredentials: .seconds(30)
            }
        let limit = min(wait + .seconds(1), console.deadline?.remaining ?? wait + .seconds(1))
        let queue = ForegroundQueue<SignInConversation>()
        let lines =
            settings.flow == .browser && !location.noInput
            ? TerminalLines { queue.post { $0.noteCutLine() } } : nil
        let conversation = SignInConversation(
            console: console, profile: isNameEnough ? name : nil, opensBrowser: !noBrowser,
            limit: WorkerRequest.seconds(within: limit),
            knownOrigins: [settings.issuer] + settings.allowedOrigins, takesPaste: lines != nil)
        let signals = SignalGuard { queue.cancel() }
        let worker = WorkerProvider(
            program: .success(program), signals: signals, wantsErrorTexts: output.verbose, lines: lines
        ) { reply in
            queue.ask { $0.show(reply) }
        }
        var signIn = SignInTransaction(worker, place, name)
        signIn.policy = policy
        signIn.deadline = console.deadline
        signIn.entered = { signals.note($0) }
        signIn.waiting = { error in queue.post { $0.tellOfWaiting(error, name) } }
        let signedIn = try signals.during { () throws(CommandFailure) in
            let outcome = queue.run(conversation) { [signIn] in await signIn.run(settings, within: limit) }
            return try SignInReport(name, conversation, signals).signedIn(outcome)
        }
        noteMissingParts(of: signedIn, console)
        console.remark(Self.greeting(signedIn.user))
        return .done
    }

    /// Prints a note for each part that is missing from the response.
    private func noteMissingParts(of signedIn: SignedIn, _ console: Console) {
        let tokens = signedIn.tokens
        if signedIn.profile.settings.scopes.contains("openid"), tokens.idToken == nil, !tokens.isOfClient {
            console.note("the provider issued no ID token: the user is unknown")
        }
        if !tokens.isRenewable {
            console.note(
                "the provider issued no refresh token: the session ends with the token; many providers issue one with --scope "
                    + "offline_access")
        }
        if signedIn.isTypeAssumed {
            console.note("the response has no token type: bearer is assumed")
        }
        if tokens.hasUnusableLifetime { console.note(CommandFailure.unusableLifetime) }
    }

    /// Checks combinations of arguments before the vault is opened.
    private func check(_ choice: SignInChoice) throws(CommandFailure) {
        guard !location.readOnly else { throw .readOnlySignIn }
        guard !clientCredentials || !device && !noBrowser && !choice.hasRedirect else {
            throw .usage(
                "--client-credentials excludes --device, --no-browser, --redirect-uri and --redirect-port",
                "remove one of them")
        }
        guard !device || !noBrowser && !choice.hasRedirect else {
            throw .usage(
                "--device excludes --no-browser and --redirect-uri, and needs no port",
                "remove one of them")
        }
    }

    /// Returns the settings: the values of the options, else those of the profile.
    private func settings(
        _ provider: ProviderChoice, _ choice: SignInChoice, _ client: ClientChoice,
        _ credentials: ClientChoice.Credentials, _ known: SignInSettings?
    ) throws(CommandFailure) -> SignInSettings {
        guard let issuer = provider.issuer ?? known?.issuer,
            let clientID = provider.clientID ?? known?.clientID
        else {
            if known == nil, provider.isNone { throw .noProfile }
            throw .usage(
                "the first sign-in needs --issuer or --provider, and --client-id", "add the missing one")
        }
        // Another client of the same provider keeps the provider's own settings.
        let sameProvider = known.flatMap { $0.issuer == issuer ? $0 : nil }
        // Nothing of another client or provider is kept, in particular not its secret.
        var settings = SignInSettings(issuer: issuer, clientID: clientID)
        let known = known.flatMap { $0.source == settings.source ? $0 : nil }
        // Options that name both issuer and client also determine the sign-in method.
        let keepsFlow = !provider.isWhole && !noBrowser && !choice.hasRedirect
        let usual = keepsFlow ? known?.flow ?? .browser : .browser
        settings.flow = device ? .device : clientCredentials ? .clientCredentials : usual
        let isOfClient = settings.flow == .clientCredentials
        // Scopes and parameters for users are not for the client itself.
        let preset = isOfClient ? nil : provider.preset
        let sameKind = known.flatMap { isOfClient == ($0.flow == .clientCredentials) ? $0 : nil }
        settings.scopes =
            choice.scopes.isEmpty ? preset?.scopes ?? sameKind?.scopes ?? [] : choice.scopes
        settings.redirect = choice.redirect ?? known?.redirect ?? preset?.redirect
        settings.redirectPort =
            choice.port ?? (choice.redirect == nil ? known?.redirectPort : nil) ?? 0
        if let port = choice.port { settings.redirect?.port = port }
        settings.certificateFile = provider.certificateFile ?? sameProvider?.certificateFile
        if settings.certificateFile == "" { settings.certificateFile = nil }
        settings.endpoints = provider.endpoints ?? (provider.isWhole ? nil : sameProvider?.endpoints)
        settings.allowedOrigins =
            provider.allowedOrigins ?? preset?.allowedOrigins ?? sameProvider?.allowedOrigins ?? []
        settings.parameters = (preset?.parameters ?? [:]).merging(sameKind?.parameters ?? [:]) { $1 }
            .merging(choice.parameters) { $1 }.filter { !$0.value.isEmpty }
        settings.resources = choice.resources ?? known?.resources ?? []
        settings.trustedAudiences = choice.trustedAudiences ?? known?.trustedAudiences ?? []
        settings.keepsPrevious = revoke.map { !$0 } ?? known?.keepsPrevious ?? false
        settings.usesDPoP = usesDPoP ?? known?.usesDPoP ?? false
        try client.apply(credentials, to: &settings, known: known)
        guard !isOfClient || settings.clientSecret != nil || settings.clientIdentity?.key != nil else {
            throw .usage(
                "--client-credentials needs a client with a secret or a key",
                "give --client-secret-file or --client-key-file")
        }
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
        "signing in or out changes the vault, and --read-only excludes changes", "leave --read-only out")
}
