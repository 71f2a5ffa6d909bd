import ArgumentParser
import ProgramSupport
import TokenVault
import TokenVaultAuth

struct Profiles: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Print the profiles of \"vaultctl login\", and whether they are signed in.",
            description: """
                A line has the name, "signed-in" or "signed-out", and the provider, with tabs between them. No provider is asked. \
                A session that the provider has ended counts as signed in until the next renewal, such as with "vaultctl token --renew".

                With --json, each object of the output has profile, issuer, clientID, scopes and signedIn.
                """,
            examples: [
                "vaultctl profiles",
                "vaultctl profiles --json",
            ],
            statuses: [
                .locked: "Profiles are hidden while the vault is locked, or no unlock method was given.",
                .refused: "The passphrase or key is wrong, or does not open some of the profiles.",
                .wrongDevice: "Some of the profiles belong to another device.",
                .unavailable:
                    "A newer program made a profile, which standard error names; or the vault, the keyring or the agent is not available.",
            ],
            standard: .items))

    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let place = try session.profileStore()
        let (listing, state) = try calling { () throws(TokenStorageError) in
            (
                try place.blocking.list(TokenQuery(prefix: ProfileStore.profiles)),
                try place.blocking.lockState()
            )
        }
        let accounts = try signedIn(place)
        var rows: [(name: String, profile: Profile)] = []
        var others: [String] = []
        for item in listing.items {
            let name = ProfileStore.name(of: item.key)
            guard let stored = try reading(name, { () throws(TokenError) in try place.profile(name) })
            else { continue }
            if let profile = stored.content { rows.append((name, profile)) } else { others.append(name) }
        }
        if format.json {
            var json = JSONWriter(console.output)
            json.array { json in
                for (name, profile) in rows {
                    json.object { json in
                        json.member("profile", name)
                        json.member("issuer", profile.settings.issuer)
                        json.member("clientID", profile.settings.clientID)
                        json.array("scopes") { json in
                            for scope in profile.settings.scopes { json.element(scope) }
                        }
                        json.member("signedIn", accounts.contains(TokenKey(name)))
                    }
                }
            }
            json.end()
        } else {
            for (name, profile) in rows {
                let state = accounts.contains(TokenKey(name)) ? "signed-in" : "signed-out"
                console.output.line(
                    CommandFailure.printable(name)
                        + "\t\(state)\t\(CommandFailure.printable("\(profile.settings.issuer)"))")
            }
        }
        for name in others {
            console.note(
                "\(name) is not a profile that this program knows: use the newer program, or create it again with --issuer and "
                    + "--client-id")
        }
        // The listing does not show which hidden items are profiles.
        if listing.hidden > 0 {
            throw List.failure(hiding: listing, state) { _ in "some items are" }
        }
        guard let other = others.first else { return .done }
        throw CommandFailure(
            .unavailable,
            others.count == 1 ? "1 profile is not listed" : "\(others.count) profiles are not listed",
            "create it again with \(CommandFailure.signingIn(other)), --issuer and --client-id")
    }

    /// Returns the names that have a visible session.
    private func signedIn(_ place: ProfileStore) throws(CommandFailure) -> Set<TokenKey> {
        do throws(TokenError) {
            return Set(try KeptSession.accounts(in: place.blocking).map { TokenKey($0) })
        } catch {
            throw CommandFailure(error, nil, "")
        }
    }
}
