import ArgumentParser
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

struct Token: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print an access token that is good.",
        discussion: """
            The one that is stored, or a new one when it is due: however many programs ask at once, the provider is asked \
            once. A newline is added only on a terminal. Exit status 3 when nobody is signed in or the provider has ended the \
            session: \"vaultctl login\" signs in again. 10 when a request was sent and no answer came: the next call goes on \
            from there.

            Examples:
              curl -H "Authorization: Bearer $(vaultctl token work)" https://api.example.com/
              token=$(vaultctl token work --min-valid 10m) || exit
              vaultctl token work --json
            """)

    @Argument(help: "The profile's name, as given to \"vaultctl login\".") var profile: String
    @Option(
        name: .customLong("min-valid"),
        help: ArgumentHelp(
            "Renew a token that is good for less than this: 90s, 15m, 2h; a minute unless given, and at most half of its life.",
            valueName: "time"))
    var minimumValidity: String?
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    /// What was parsed, as the fast path has it.
    var arguments: TokenArguments {
        TokenArguments(
            profile: profile, minimumValidity: minimumValidity, location: location.arguments,
            unlock: unlock.arguments, json: format.json)
    }

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        try Self.execute(arguments, console)
    }

    static func execute(_ arguments: TokenArguments, _ console: Console) throws(CommandFailure) -> ExitStatus
    {
        let session = try Session(console, arguments.location, arguments.unlock)
        let name = try LoginPlace.name(arguments.profile)
        var configuration = TokenManager.Configuration()
        if let text = arguments.minimumValidity {
            guard let seconds = ItemDetails.seconds(text), seconds <= 1e9 else {
                throw .usage("--min-valid is no time", "use a span such as 90s, 15m or 8h")
            }
            configuration.accessTokenRefreshBuffer = .seconds(Int64(seconds))
        }
        let place = try session.loginPlace()
        let tokens = try tokens(of: name, in: place, configuration, console)
        if arguments.json {
            var json = JSONWriter(console.output)
            json.object { json in
                json.member("profile", name)
                json.member("accessToken", tokens.accessSecret)
                json.member("tokenType", tokens.tokenType)
                json.member("expires", tokens.accessTokenExpiry.map { Timestamp.text($0) })
                json.member("scope", tokens.scope)
            }
            json.end()
        } else {
            tokens.accessSecret.withBytes { console.output.write($0) }
            if StandardStream.output.isTerminal { console.output.write("\n") }
        }
        return .done
    }

    /// The tokens, renewed when they are due. While they are not, no task, no thread and no other program is started.
    private static func tokens(
        of name: String, in place: LoginPlace, _ configuration: TokenManager.Configuration, _ console: Console
    ) throws(CommandFailure) -> TokenInfo {
        let stored: StoredToken
        do throws(TokenError) {
            stored = try StoredToken.look(for: name, in: place.blocking, configuration: configuration)
        } catch {
            throw CommandFailure(error, nil)
        }
        switch stored {
        case .fresh(let tokens): return tokens
        case .due(let tokens, let isUsable):
            let program: OAuthProgram
            do throws(CommandFailure) { program = try OAuthProgram.find() } catch {
                guard isUsable else { throw error }
                console.note("the token was not renewed: \(error.happened): \(error.advice)")
                return tokens
            }
            let session = ProfileSession(
                place, name, try place.existingProfile(name), program: .success(program),
                deadline: console.deadline, configuration: configuration)
            return try session.wait { (manager) async throws(TokenError) in
                _ = try await manager.accessToken()
                guard let tokens = try await manager.currentTokens() else { throw .tokenNotFound }
                return tokens
            }
        }
    }
}
