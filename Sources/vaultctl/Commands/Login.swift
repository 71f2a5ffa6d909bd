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

            At the provider, register a public (native) client for the authorization code with PKCE that comes back to \
            http://127.0.0.1/callback on any port, or on that of --redirect-port; for --device one that may use the device grant.

            Examples:
              vaultctl login work --issuer https://id.example.com --client-id my-tool \\
                --scope openid --scope offline_access
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
    @Flag(
        name: .customLong("no-revoke"),
        help: ArgumentHelp(
            "Leave the session before as it is at the provider: for one that ends the new session with it."))
    var noRevoke = false
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let secretSource = try ClientSecretSource(file: clientSecretFile, descriptor: clientSecretDescriptor)
        let session = try Session(console, location.arguments, unlock.arguments)
        let name = try ProfileStore.name(profile)
        let policy = try ItemDetails.policy(policy)
        let port = try check()
        let program = try OAuthProgram.find()
        let secret = try secretSource.read(console)
        let place = try session.loginPlace()
        // Without an issuer or a client ID, the profile names the provider.
        let isWhole = issuer != nil && clientID != nil
        let stored = try place.profile(name)
        let known = isWhole ? stored?.content : try stored?.profile
        var request = try request(known, secret, port)
        // This is the last check that can prevent the sign-in. The earlier checks concern the user's
        // arguments.
        let isNameEnough = issuer == nil && clientID == nil
        if request.operation == .browser, !noBrowser, Browser.find(for: "") == nil {
            throw .noBrowser(isNameEnough ? name : nil)
        }
        let end = console.deadline ?? Deadline(after: .seconds(request.seconds + 10))
        // The worker times out slightly earlier, so that its answer still arrives.
        let left = end.remaining.inSeconds
        request.seconds = min(request.seconds, max(left * 0.9, left - 1))
        let conversation = SignInConversation(
            console: console, profile: isNameEnough ? name : nil, opensBrowser: !noBrowser,
            limit: request.seconds)
        let interruption = SignalGuard()
        let signedIn = try interruption.during { () throws(CommandFailure) -> WorkerReply.SignedIn in
            let signedIn = try ask(request, of: program, until: end, conversation, interruption)
            let provider = ProfileProvider(
                profile: LoginProfile(signedIn, request), program: program, deadline: console.deadline)
            try keep(signedIn, of: provider, in: place, as: name, policy, console, interruption)
            return signedIn
        }
        if request.scopes.contains("openid"), signedIn.tokens.idToken == nil {
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

    /// Runs the sign-in and returns the provider's answer with the tokens.
    private func ask(
        _ request: WorkerRequest, of program: OAuthProgram, until end: Deadline,
        _ conversation: SignInConversation, _ interruption: SignalGuard
    ) throws(CommandFailure) -> WorkerReply.SignedIn {
        let trouble: OAuthProgram.WorkerError
        do throws(OAuthProgram.WorkerError) {
            let reply = try program.ask(
                request, until: end, interruption: interruption, show: conversation.show)
            if case .signedIn(let signedIn) = reply { return signedIn }
            trouble = .misunderstood
        } catch {
            trouble = error
        }
        if interruption.signal != nil {
            switch trouble {
            case .failed(let failure) where failure.leavesTokens ?? false:
                conversation.console.note(
                    "what the provider gave may be good until it expires, since the provider was not told")
            case .failed(let failure) where failure.mayLeaveSession ?? false:
                conversation.console.note(Self.unknown)
            case .failed, .notStarted, .notAsked: break
            default: conversation.console.note(Self.unknown)
            }
            throw .interrupted
        }
        // A worker that waits in vain reports a timeout itself, before this limit.
        if trouble == .timedOut {
            throw CommandFailure(
                .timedOut, "vaultctl-oauth did not answer in time",
                "\(Self.unknown); end the session at the provider's own page, and sign in again")
        }
        // Without an address, the user could not sign in. Whether the request or the whole sign-in took too long first
        // makes no difference then.
        if conversation.options == nil, case .failed(let failure) = trouble,
            failure.kind == .timedOut || failure.kind == .noAnswer
        {
            throw CommandFailure(
                .timedOut, "the provider did not answer in time",
                "check --issuer and the network, and try again, with a longer --timeout if need be")
        }
        guard let options = conversation.options, case .failed(let failure) = trouble,
            failure.kind == .timedOut
        else {
            var reason = CommandFailure(trouble, isSignIn: true)
            switch trouble {
            case .ended, .misunderstood, .broken:
                // The user saw the address and may have signed in there.
                guard conversation.options != nil else { break }
                reason.happened += "; \(Self.unknown)"
                reason.advice += "; end such a session at the provider's own page"
            default: break
            }
            throw reason
        }
        var reason = CommandFailure(failure)
        reason.advice += "; if the page showed a mistake, check \(options) first"
        throw reason
    }

    private static let unknown = "the provider may have given tokens that nobody has"

    /// Checks the arguments, before anything is opened or asked. Returns the port.
    private func check() throws(CommandFailure) -> Int? {
        guard !location.readOnly else { throw .readOnlySignIn }
        guard !device || !noBrowser, !device || redirectPort == nil else {
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
        return try redirectPort.map { (text) throws(CommandFailure) in
            try Settings.number(text, named: "--redirect-port", 0...65_535)
        }
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

    /// Returns the request: the values of the options, else those of the profile.
    private func request(
        _ known: LoginProfile?, _ secret: Secret?, _ port: Int?
    ) throws(CommandFailure) -> WorkerRequest {
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
        let isDevice = device || (!isWhole && !noBrowser && port == nil && known?.device ?? false)
        var request = WorkerRequest(
            operation: isDevice ? .device : .browser, issuer: issuer, clientID: clientID,
            seconds: isDevice ? 1_800 : 300)
        request.scopes = scope.isEmpty ? known?.scopes ?? [] : scope
        request.redirectPort = port ?? known?.redirectPort ?? 0
        request.clientSecret = secret?.unprotectedText() ?? known?.clientSecret
        return request
    }

    /// Stores the profile and the session, and ends the previous session. Revokes tokens that cannot be
    /// stored, because they would be lost.
    private func keep(
        _ signedIn: WorkerReply.SignedIn, of provider: ProfileProvider, in place: ProfileStore,
        as name: String,
        _ policy: AccessPolicy?, _ console: Console, _ interruption: SignalGuard
    ) throws(CommandFailure) {
        let outcome = store(signedIn, with: provider, in: place, as: name, policy, console, interruption)
        let before: ProfileStore.Contents?
        switch outcome {
        case .success(let contents): before = contents
        case .failure(let error) where interruption.signal == nil:
            let isRevoked = provider.revokeUnused(
                signedIn.tokens, "what the provider gave", console, interruption)
            var failure = error
            if error.mayBeDone {
                // A search found no stored session, but a slow vault may still store it.
                try? place.endSession(of: signedIn.tokens, at: name)
                failure.happened = "the vault did not say that it has it"
                failure.advice = "see what is the matter with it: \"vaultctl verify\""
            }
            let what =
                isRevoked
                ? "what the provider gave could not be stored and was revoked, so sign in again"
                : "that could not be stored"
            failure.happened = "signed in, but \(what): \(failure.happened)"
            failure.cause = nil
            throw failure
        case .failure, nil:
            if provider.revokeUnused(signedIn.tokens, "what the provider gave", console, interruption) {
                console.note("what the provider gave was revoked: sign in again")
            }
            if interruption.waitForUndoing() {
                console.note(
                    "it may be stored all the same when the vault answers: \(CommandFailure.signingIn(name)) signs in again"
                )
            }
            throw .interrupted
        }
        guard !noRevoke else { return }
        guard let before else {
            return console.note(
                "whether somebody was signed in before is not known: that session may go on at the provider")
        }
        guard let replaced = before.session else { return }
        defer { interruption.noteSettled() }
        let newer = place.newer(than: replaced, of: name)
        let what = "what the provider gave at the sign-in before"
        guard let tokens = replaced.tokens, let profile = before.profile?.content,
            replaced.source == profile.source, profile.issuer == provider.profile.issuer
        else {
            return console.note(
                "the session before is not of this provider, which is not told: it may go on there")
        }
        if newer == .waitedFor, profile.offersRevocation {
            console.note("of the sign-in before: \(CommandFailure.waitedFor)")
        }
        let isTold = ProfileProvider(
            profile: profile, program: provider.program, deadline: provider.deadline
        ).revokeUnused(tokens, what, console, interruption)
        if newer == .lost, isTold {
            let reason = CommandFailure.newerSession
            console.note("of the sign-in before, \(reason.happened): \(reason.advice)")
        }
    }

    /// Stores the tokens once the vault is unlocked. The vault may have locked during the sign-in; then a
    /// note asks the user to unlock it. Returns `nil` when a signal came.
    private func store(
        _ signedIn: WorkerReply.SignedIn, with provider: ProfileProvider, in place: ProfileStore,
        as name: String, _ policy: AccessPolicy?, _ console: Console, _ interruption: SignalGuard
    ) -> Result<ProfileStore.Contents?, CommandFailure>? {
        let end = Deadline(
            after: .seconds(max(1, min(60, (provider.deadline?.remaining.inSeconds ?? 90) * 0.7))))
        var isTold = false
        let revokes = !noRevoke
        // After a signal, no new attempt starts.
        while interruption.signal == nil {
            let outcome = interruption.attempt { (again) throws(CommandFailure) in
                let before = try place.begin(
                    signedIn.tokens, of: signedIn.user, with: provider.profile, as: name, policy: policy)
                if revokes, before.session != nil {
                    interruption.note(
                        leaving:
                            "signed in, but what the provider gave at the sign-in before may be good until it expires"
                    )
                } else {
                    interruption.noteSettled()
                }
                // An earlier attempt may have stored the session. Then the previous contents are unknown.
                let isOwn = before.session?.tokens?.accessSecret == signedIn.tokens.accessSecret
                return again && isOwn ? nil : before
            } undo: { before in
                Self.restore(signedIn.tokens, to: before, in: place, at: name)
            }
            guard case .failure(let error) = outcome, error.status == .locked, !end.hasPassed else {
                return outcome
            }
            if !isTold {
                let told = error.told(passingOver: console.variablePassedOver)
                console.note(
                    "signed in, but that cannot be stored yet; it is tried for up to a minute: \(told.happened): \(told.advice)"
                )
            }
            isTold = true
            interruption.wait(atMost: .milliseconds(250))
        }
        return nil
    }

    /// Restores the previous contents after a signal ended the sign-in, because the new tokens are being
    /// revoked.
    private static func restore(
        _ tokens: TokenInfo, to before: ProfileStore.Contents?, in place: ProfileStore, at name: String
    ) {
        do throws(CommandFailure) {
            guard let before else { return try place.endSession(of: tokens, at: name) }
            try place.restore(tokens, to: before, at: name)
        } catch {
            SignalGuard.note(
                "what was revoked was stored meanwhile, and is there still (\(error.happened)): "
                    + "\(CommandFailure.signingIn(name)) signs in again; the session before may go on at the provider"
            )
        }
    }

    private static func greeting(_ user: AuthUser?) -> String {
        guard let name = user?.email ?? user?.name, name.utf8.count <= 254 else { return "Signed in." }
        return "Signed in as \(name)."
    }
}

extension LoginProfile {
    /// Creates the profile from a sign-in and its request.
    fileprivate init(_ signedIn: WorkerReply.SignedIn, _ request: WorkerRequest) {
        self.init(
            issuer: request.issuer, metadata: signedIn.metadata, clientID: request.clientID,
            authentication: signedIn.authentication, clientSecret: request.clientSecret,
            scopes: request.scopes, redirectPort: request.redirectPort, device: request.operation == .device)
    }
}

extension CommandFailure {
    /// A signal came. The signal takes effect before this failure is printed.
    static let interrupted = CommandFailure(.failure, "ended by a signal", "try again")

    /// The failure of a sign-in or sign-out under `--read-only`.
    static let readOnlySignIn = CommandFailure.usage(
        "--read-only, and signing in or out changes the vault", "leave it out")
}
