import ArgumentParser
import OAuthWire
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

#if canImport(FoundationEssentials)
import FoundationEssentials
import ProgramSupport
#endif

struct Token: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Print a valid access token.",
            description: """
                The command prints the stored token, or a new one when it is due. However many programs ask at once, the provider \
                gets one request. A newline is added only on a terminal. If the provider cannot be reached, a token that is still valid is printed. Standard \
                error says if the answer to a renewal was lost: the provider may then reject the token. If a server refuses a token (401), the provider may have revoked it: use --renew. With --renew, a token that could not be renewed is not printed.

                If no answer comes to a renewal, the next call continues the renewal. If new tokens cannot be stored, the command tries again for a minute, or for most of --timeout. After that, or when a signal ends the command, the new tokens are lost. The next call then sends the previous token \
                again. If the provider permits that, the session goes on.

                With --audience, --resource or --scope, the token is exchanged for another one. Not every provider supports this. \
                With --min-valid, standard error says if the token is valid for less, and no token without a usable lifetime is \
                printed.

                Other users can see the arguments of a program. With --headers-for, the token stays out of them: see the example \
                with curl. For a token that is bound to a key ("vaultctl login --dpop"), the output also has a DPoP header, valid for \
                one request. An exchange fails if the provider does not bind the new token.

                With --json, the output is an object with profile, accessToken, idToken (with --id), tokenType, expires, scope and \
                proof (the DPoP header).
                """,
            examples: [
                "token=$(vaultctl token work --min-valid 10m) || exit",
                """
                url=https://api.example.com/items
                headers=$(vaultctl token work --headers-for "$url") \\
                  && printf '%s\\n' "$headers" | curl -H @- "$url"
                """,
                "vaultctl token work --renew",
                "vaultctl token work --id",
                "vaultctl token work --audience billing",
                "vaultctl token work --json",
            ],
            statuses: [
                .failure:
                    "The token's lifetime is not usable (--min-valid), the session's key is not usable, or another failure.",
                .notFound:
                    "There is no such profile, session or valid ID token, the provider has ended the session, or the session cannot be renewed.",
                .refused: "The provider refused the request, or the passphrase or key is wrong.",
                .wrongDevice: "The session belongs to another device.",
                .unavailable:
                    "The provider, vaultctl-oauth, the vault, the keyring or the agent is not available, or a newer program stored the session.",
                .conflict:
                    "The session is of another provider or client than the profile, and was not sent. Or it was replaced or ended meanwhile, or the same vault is at two paths.",
                .timedOut:
                    "A request was sent and no usable answer came, or new tokens were not stored in time. The next call tries again.",
            ],
            standard: .items))

    @Argument(
        help: "The profile's name, as given to \"vaultctl login\".", completion: NameCompletion.profiles)
    var profile: String
    @Option(
        name: .customLong("min-valid"),
        help: ArgumentHelp(
            "Renew a token that is valid for less than this time: 90s, 15m, 2h; by default a minute. At most half of the token's lifetime counts.",
            valueName: "time"))
    var minimumValidity: String?
    @Flag(help: "Renew the token now, whatever its expiry.") var renew = false
    @Flag(
        name: .customLong("id"),
        help: "Print the ID token, which names the signed-in user, in place of the access token.")
    var isOfUser = false
    @OptionGroup(title: "Another service") var exchange: ExchangeOptions
    @OptionGroup(title: "Headers of a request") var headers: HeaderOptions
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions
    @OptionGroup var output: VerboseOptions

    /// The parsed arguments, in the form of the fast path.
    var arguments: TokenArguments {
        TokenArguments(
            profile: profile, minimumValidity: minimumValidity, renew: renew, isOfUser: isOfUser,
            location: location.arguments,
            unlock: unlock.arguments, json: format.json, isVerbose: output.verbose)
    }

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        var arguments = arguments
        arguments.exchange = try exchange.target()
        arguments.headers = try headers.target()
        return try Self.execute(arguments, console)
    }

    static func execute(_ arguments: TokenArguments, _ console: Console) throws(CommandFailure) -> ExitStatus
    {
        guard !arguments.renew || !arguments.location.readOnly else {
            throw .usage("renewing changes the vault, and --read-only excludes changes", "remove one of them")
        }
        guard arguments.exchange == nil || !arguments.isOfUser else {
            throw .usage("--id excludes --audience, --resource and --scope", "remove one of them")
        }
        guard arguments.headers == nil || !arguments.isOfUser else {
            throw .usage("--id excludes --headers-for", "remove one of them")
        }
        let session = try Session(console, arguments.location, arguments.unlock)
        let name = try ProfileStore.name(arguments.profile)
        var configuration = TokenManager.Configuration()
        if let text = arguments.minimumValidity {
            guard let seconds = ItemDetails.seconds(text), seconds <= 1e9 else {
                throw .usage("--min-valid is not a duration", "use a span such as 90s, 15m or 8h")
            }
            configuration.accessTokenRefreshBuffer = .seconds(Int64(seconds))
        }
        let place = try session.profileStore()
        var (tokens, source) = try tokens(
            of: name, in: place, renew: arguments.renew, configuration, console,
            isVerbose: arguments.isVerbose)
        if let target = arguments.exchange {
            tokens = try exchanged(
                tokens, of: source, for: target, name, in: place, console, arguments.isVerbose)
            if tokens.hasUnusableLifetime { console.note(CommandFailure.unusableLifetime) }
        }
        let idToken =
            arguments.isOfUser ? try Self.idToken(of: tokens, name, isRenewed: arguments.renew) : nil
        if arguments.minimumValidity != nil {
            guard arguments.isOfUser || !tokens.hasUnusableLifetime else {
                throw CommandFailure(
                    .failure, CommandFailure.unusableLifetime, "leave --min-valid out to get the token")
            }
            let expiry = arguments.isOfUser ? tokens.idTokenExpiry : tokens.accessTokenExpiry
            note(expiry, configuration.accessTokenRefreshBuffer, console)
        }
        var proof: String?
        if let target = arguments.headers, let key = tokens.dpopKey?.unprotectedText() {
            let request = ProofRequest(key: key, token: tokens.accessToken, target: target)
            do throws(CommandFailure) { proof = try Self.proof(request, name, console) } catch {
                if arguments.exchange != nil { console.note(Self.exchangedToken) }
                throw error
            }
        }
        if arguments.json {
            var json = JSONWriter(console.output)
            json.object { json in
                json.member("profile", name)
                json.member("accessToken", tokens.accessSecret)
                if let idToken { json.member("idToken", idToken) }
                json.member("tokenType", tokens.tokenType)
                json.member("expires", tokens.accessTokenExpiry.map { Timestamp.text($0) })
                json.member("scope", tokens.scope)
                if let proof { json.member("proof", proof) }
            }
            json.end()
        } else if arguments.headers != nil {
            let type = tokens.dpopKey == nil ? tokens.tokenType : TokenInfo.dpopType
            console.output.write("Authorization: \(type) ")
            tokens.accessSecret.withBytes { console.output.write($0) }
            console.output.write("\n")
            if let proof { console.output.write("DPoP: \(proof)\n") }
        } else {
            if tokens.dpopKey != nil, idToken == nil {
                console.note("a server accepts this token only with a proof: --headers-for prints both")
            }
            (idToken ?? tokens.accessSecret).withBytes { console.output.write($0) }
            if StandardStream.output.isTerminal { console.output.write("\n") }
        }
        return .done
    }

    /// Returns the proof for `request`, signed by `vaultctl-oauth`. Throws the failure of that program.
    private static func proof(
        _ request: ProofRequest, _ name: String, _ console: Console
    ) throws(CommandFailure) -> String {
        let limit = requestLimit(console)
        let program = try OAuthProgram.find()
        do throws(OAuthProgram.WorkerError) {
            let reply = try program.ask(
                WorkerRequest(.prove(request), within: limit), until: Deadline(after: limit))
            if case .proved(let text) = reply { return text }
            throw .misunderstood
        } catch {
            throw CommandFailure(unproved: error, name)
        }
    }

    /// The longest time for a request of the worker.
    private static func requestLimit(_ console: Console) -> Duration {
        min(.seconds(29), console.deadline?.remaining ?? .seconds(29))
    }

    /// Returns the ID token. Throws when there is none, or it has expired: a server would refuse it.
    private static func idToken(
        of tokens: TokenInfo, _ name: String, isRenewed: Bool
    ) throws(CommandFailure) -> Secret {
        guard let idToken = tokens.idSecret else {
            throw CommandFailure(
                .notFound, "the provider issued no ID token",
                tokens.isOfClient
                    ? "a client's own session has none: leave --id out"
                    : "run \(CommandFailure.signingIn(name).dropLast()) --scope openid\"")
        }
        if let expiry = tokens.idTokenExpiry, expiry <= Date() {
            throw CommandFailure(
                .notFound, "the ID token has expired",
                isRenewed
                    ? "the provider issued no new one: run \(CommandFailure.signingIn(name))"
                    : "get a new one with --renew, or run \(CommandFailure.signingIn(name))"
            )
        }
        return idToken
    }

    /// Prints a note when the token is valid for less time than `--min-valid` requires.
    private static func note(_ expiry: Date?, _ wanted: Duration, _ console: Console) {
        guard let left = expiry?.timeIntervalSinceNow, left < wanted.inSeconds else {
            return
        }
        console.note(
            "the token is valid for \(max(0, Int(left))) seconds, less than --min-valid (\(Int(wanted.inSeconds)) seconds): "
                + "the provider issues only shorter-lived tokens, or was not asked; --renew asks it")
    }

    /// Returns the tokens, renewed when they are due. Fresh tokens need no task, no thread and no other
    /// program.
    private static func tokens(
        of name: String, in place: ProfileStore, renew: Bool, _ configuration: TokenManager.Configuration,
        _ console: Console, isVerbose: Bool
    ) throws(CommandFailure) -> (tokens: TokenInfo, source: TokenSource?) {
        let stored: StoredToken
        do throws(TokenError) {
            stored = try StoredToken.look(for: name, in: place.blocking, configuration: configuration)
        } catch {
            throw error == .tokenNotFound ? try place.absence(of: name) : CommandFailure(error, nil, name)
        }
        guard stored.tokens.tokenType != TokenInfo.dpopType || stored.tokens.dpopKey != nil else {
            throw .noKey(name)
        }
        if stored.isFresh, !renew {
            noteLostRenewal(of: stored, name, in: place, console)
            return (stored.tokens, stored.source)
        }
        let (profile, program): (Profile, OAuthProgram)
        do throws(CommandFailure) {
            (profile, program) = try provider(stored.source, name, in: place)
        } catch {
            guard stored.isUsable, !renew, error.cause == nil else { throw error }
            console.note("the token was not renewed: \(error.happened): \(error.advice)")
            return (stored.tokens, stored.source)
        }
        guard !renew || stored.tokens.isRenewable else {
            throw CommandFailure(
                .notFound, "the provider issued no refresh token",
                "run \(CommandFailure.signingIn(name)), with --scope offline_access at many providers"
            )
        }
        let queue = ForegroundQueue<Console>()
        let signals = SignalGuard(meanwhile: "the new tokens are being stored") { queue.cancel() }
        var renewal = RenewalTransaction(
            WorkerProvider(
                program: .success(program), signals: signals, wantsErrorTexts: isVerbose,
                show: WorkerProvider.showing(errorTextsOn: queue)),
            place, name, profile, configuration)
        renewal.deadline = console.deadline
        renewal.entered = { signals.note($0) }
        renewal.waiting = { error in queue.post { RenewalReport(name, $0).tellOfWaiting(error) } }
        let tokens = try signals.during { () throws(CommandFailure) in
            let outcome = queue.run(console) { [renewal] in
                await renewal.run(replacing: stored, isForced: renew)
            }
            return try RenewalReport(name, console).tokens(outcome, isEnded: signals.signal != nil)
        }
        if tokens.hasUnusableLifetime, !stored.tokens.hasUnusableLifetime {
            console.note(CommandFailure.unusableLifetime)
        }
        if tokens.accessSecret == stored.tokens.accessSecret,
            let now = try? StoredToken.look(for: name, in: place.blocking, configuration: configuration)
        {
            noteLostRenewal(of: now, name, in: place, console)
        }
        // A renewal stays in its session, which has one source.
        return (tokens, stored.source)
    }

    /// Prints a note that the provider may reject the token, because the provider may have issued a newer
    /// token that was lost.
    private static func noteLostRenewal(
        of stored: StoredToken, _ name: String, in place: ProfileStore, _ console: Console
    ) {
        guard stored.mayBeOutdated, let session = try? place.session(name),
            place.newer(than: session, of: name) == .lost
        else { return }
        console.note(
            "a renewal was started and its outcome is unknown: the provider may reject this token; in that case, use "
                + "--renew")
    }

    /// The note on an exchanged token that is not printed.
    private static let exchangedToken = "the exchanged token is valid until it expires"

    /// Returns the token of another service, exchanged for `tokens`. It is not stored. The tokens go only to the provider
    /// that issued them, `source`: another sign-in may have replaced the profile meanwhile.
    private static func exchanged(
        _ tokens: TokenInfo, of source: TokenSource?, for target: ExchangeTarget, _ name: String,
        in place: ProfileStore,
        _ console: Console, _ isVerbose: Bool
    ) throws(CommandFailure) -> TokenInfo {
        let (profile, program) = try provider(source, name, in: place)
        let exchange = TokenExchange(
            token: tokens.accessToken, audience: target.audience, resources: target.resources,
            scopes: target.scopes, dpopKey: tokens.dpopKey?.unprotectedText())
        let queue = ForegroundQueue<Console>()
        let signals = SignalGuard { queue.cancel() }
        let worker = WorkerProvider(
            program: .success(program), signals: signals, wantsErrorTexts: isVerbose,
            show: WorkerProvider.showing(errorTextsOn: queue))
        let limit = requestLimit(console)
        return try signals.during { () throws(CommandFailure) in
            let outcome: Result<TokenInfo, OAuthProgram.WorkerError> = queue.run(console) {
                do throws(OAuthProgram.WorkerError) {
                    return .success(try await worker.exchange(exchange, of: profile, within: limit))
                } catch {
                    return .failure(error)
                }
            }
            switch outcome {
            case .success(let tokens):
                guard signals.signal != nil else { return tokens }
                console.note(exchangedToken)
                throw .interrupted
            case .failure(let trouble):
                let failure = trouble.refreshFailure
                guard signals.signal == nil else {
                    if failure.leavesOutcomeUnknown || failure.leavesTokens {
                        console.note("the provider may have issued a token that is valid until it expires")
                    }
                    throw .interrupted
                }
                throw CommandFailure(
                    .refreshFailed(failure, retryAfter: failure.retryAfter), trouble, name)
            }
        }
    }

    /// Returns the profile of the provider that issued the stored tokens, and the program that asks it.
    private static func provider(
        _ source: TokenSource?, _ name: String, in place: ProfileStore
    ) throws(CommandFailure) -> (Profile, OAuthProgram) {
        let known = try reading(name) { () throws(TokenError) in try place.profile(name) }
        guard let profile = try known?.profile else { throw .noProfile }
        guard source == profile.source else { throw .otherSource(name) }
        return (profile, try OAuthProgram.find())
    }
}
