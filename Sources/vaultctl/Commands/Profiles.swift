import ArgumentParser
import TokenVault
import TokenVaultAuth

struct Profiles: VaultCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the profiles that \"vaultctl login\" made, and whether they are signed in.",
        discussion: """
            A line each: the name, \"signed-in\" or \"signed-out\", and the provider, with tabs in between. No provider is \
            asked: a session that it has ended shows with the next \"vaultctl token\".

            Examples:
              vaultctl profiles
              vaultctl profiles --json
            """)

    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let place = try session.loginPlace()
        let (listing, state) = try calling { () throws(TokenStorageError) in
            (
                try place.blocking.list(TokenQuery(prefix: LoginPlace.profiles)),
                try place.blocking.lockState()
            )
        }
        let accounts = try signedIn(place, console)
        var rows: [(name: String, profile: LoginProfile)] = []
        for item in listing.items {
            let name = String(item.key.name.dropFirst(LoginPlace.profiles.count))
            if let stored = try place.profile(name) { rows.append((name, stored.profile)) }
        }
        if format.json {
            var json = JSONWriter(console.output)
            json.array { json in
                for (name, profile) in rows {
                    json.object { json in
                        json.member("profile", name)
                        json.member("issuer", profile.issuer)
                        json.member("clientID", profile.clientID)
                        json.array("scopes") { json in for scope in profile.scopes { json.element(scope) } }
                        json.member("signedIn", accounts.contains(TokenKey(name)))
                    }
                }
            }
            json.end()
        } else {
            for (name, profile) in rows {
                let state = accounts.contains(TokenKey(name)) ? "signed-in" : "signed-out"
                console.output.line(CommandFailure.printable(name) + "\t\(state)\t\(profile.issuer)")
            }
        }
        guard listing.hidden > 0 else { return .done }
        throw List.failure(hiding: listing, state)
    }

    /// The names that have a session, as far as that shows.
    private func signedIn(_ place: LoginPlace, _ console: Console) throws(CommandFailure) -> Set<TokenKey> {
        let outcome = Tasks.wait(until: console.deadline) { () async -> Result<[String], TokenError> in
            do throws(TokenError) {
                return .success(try await TokenManager.accounts(in: place.storage))
            } catch {
                return .failure(error)
            }
        }
        switch outcome {
        case .success(let names): return Set(names.map { TokenKey($0) })
        case .failure(let error): throw CommandFailure(error, nil)
        case nil: throw CommandFailure(.timedOut, nil)
        }
    }
}
