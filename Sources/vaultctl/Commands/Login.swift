import ArgumentParser
import OAuthWire
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

struct Login: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sign in at an OAuth or OpenID Connect provider, once.",
        discussion: """
            The browser is shown the provider's page, or with --device any other device. What the provider gives is kept in \
            the vault under the profile's name, and \"vaultctl token\" prints an access token of it, renewed when it is due. \
            The options are kept as well: later, the name alone signs in again.

            Examples:
              vaultctl login work --issuer https://id.example.com --client-id my-tool --scope openid --scope offline_access
              vaultctl login server --issuer https://id.example.com --client-id my-tool --device
              vaultctl login work
              curl -H "Authorization: Bearer $(vaultctl token work)" https://api.example.com/
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
        help: ArgumentHelp(
            "The port of 127.0.0.1 that the browser comes back to, where the provider takes only one.",
            valueName: "number"))
    var redirectPort: String?
    @Option(
        help: ArgumentHelp(
            "When the session can be read, as for \"vaultctl store\"; after-first-unlock-this-device-only for jobs that run "
                + "while the vault is locked.", valueName: "policy"),
        completion: .list(ItemDetails.policyNames))
    var policy: String?
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let secretSource = try ClientSecretSource(file: clientSecretFile, descriptor: clientSecretDescriptor)
        let session = try Session(console, location.arguments, unlock.arguments)
        let name = try LoginPlace.name(profile)
        let policy = try ItemDetails.policy(policy)
        try check()
        // Before anything is asked: whether this can succeed at all.
        let program = try OAuthProgram.find()
        if !device, !noBrowser, Browser.find(for: "") == nil { throw .noBrowser }
        let secret = try secretSource.read(console)
        let place = try session.loginPlace()
        let known = try place.profile(name)
        let request = try request(known?.profile, secret)
        let conversation = SignInConversation(console: console, opensBrowser: !noBrowser)
        let reply: WorkerReply
        do throws(OAuthProgram.Trouble) {
            reply = try program.ask(
                request, until: console.deadline ?? Deadline(after: .seconds(request.seconds + 10)),
                show: conversation.show)
        } catch {
            throw CommandFailure(error, isSignIn: true)
        }
        guard case .signedIn(let signedIn) = reply else {
            throw CommandFailure(OAuthProgram.Trouble.misunderstood, isSignIn: true)
        }
        try keep(signedIn, request, known, in: place, as: name, policy, program, console)
        console.remark(Self.greeting(signedIn.user))
        return .done
    }

    private func check() throws(CommandFailure) {
        guard !location.readOnly else {
            throw .usage("--read-only, and a sign-in is stored", "leave it out")
        }
        guard !device || !noBrowser, !device || redirectPort == nil else {
            throw .usage("--device takes no browser and no port", "leave the one or the other out")
        }
        for (option, value) in [("--issuer", issuer), ("--client-id", clientID)] where value?.isEmpty == true
        {
            throw .usage("\(option) is empty", "give it a value, or leave it out")
        }
    }

    /// What is asked for: what the options say, else what the profile has.
    private func request(_ known: LoginProfile?, _ secret: Secret?) throws(CommandFailure) -> WorkerRequest {
        guard let issuer = issuer ?? known?.issuer, let clientID = clientID ?? known?.clientID else {
            if known == nil, issuer == nil, clientID == nil { throw .noProfile }
            throw .usage("the first sign-in needs both --issuer and --client-id", "give them")
        }
        let limit = device ? 1_800.0 : 300.0
        var request = WorkerRequest(
            operation: device ? .device : .browser, issuer: issuer, clientID: clientID, seconds: limit)
        request.scopes = scope.isEmpty ? known?.scopes ?? [] : scope
        request.redirectPort =
            try redirectPort.map { (text) throws(CommandFailure) in
                try Settings.number(text, named: "--redirect-port", 1...65_535)
            } ?? known?.redirectPort ?? 0
        request.clientSecret = secret?.unprotectedText()
        // A client's secret is for its own provider alone.
        if secret == nil, let known, !isAnother(than: known) { request.clientSecret = known.clientSecret }
        return request
    }

    /// Whether the options name another provider or client.
    private func isAnother(than known: LoginProfile) -> Bool {
        (issuer ?? known.issuer) != known.issuer || (clientID ?? known.clientID) != known.clientID
    }

    private func keep(
        _ signedIn: WorkerReply.SignedIn, _ request: WorkerRequest, _ known: StoredProfile?,
        in place: LoginPlace, as name: String, _ policy: AccessPolicy?, _ program: OAuthProgram,
        _ console: Console
    ) throws(CommandFailure) {
        let profile = LoginProfile(
            issuer: request.issuer, metadata: signedIn.metadata, clientID: request.clientID,
            authentication: signedIn.authentication, clientSecret: request.clientSecret,
            scopes: request.scopes, redirectPort: request.redirectPort)
        var configuration = TokenManager.Configuration()
        configuration.policy = policy ?? known?.policy
        let session = ProfileSession(
            place, name, nil, program: .success(program), deadline: console.deadline,
            configuration: configuration)
        // The old session goes before the profile changes: its token is never sent to the new provider.
        if let known, isAnother(than: known.profile) {
            try session.wait { (manager) async throws(TokenError) in _ = try await manager.clearTokens() }
        }
        try place.store(profile, as: name, policy: policy)
        try session.wait { (manager) async throws(TokenError) in
            try await manager.updateTokens(signedIn.tokens, user: signedIn.user)
        }
    }

    private static func greeting(_ user: AuthUser?) -> String {
        guard let name = user?.email ?? user?.name, name.utf8.count <= 254 else { return "Signed in." }
        return "Signed in as \(name)."
    }
}
