import TokenVault
import TokenVaultAuth

/// A screen of text: it shows the state of an `AuthContainer`, and runs the commands that the user types.
@MainActor
struct SignInScreen {
    let container: AuthContainer
    let server: DemoServer

    /// The state in one line. A graphical app observes `container.state` in the same way.
    var text: String {
        switch container.state {
        case .unknown: "Reading the storage"
        case .signedOut: "Signed out (\(container.authType.rawValue))"
        case .signedIn(let user): "Signed in as \(user?.name ?? "?") (\(container.authType.rawValue))"
        case .guest: "A guest"
        case .locked: "The vault is locked"
        case .unavailable(let error): "\(error)"
        }
    }

    /// Runs one command and returns the line to show.
    func run(_ command: String) async -> String {
        let words = command.split(separator: " ", maxSplits: 2).map(String.init)
        do {
            switch words.first {
            case "login" where words.count == 3:
                try await container.login(
                    SignInRequest(
                        provider: .password, userName: words[1], credential: Secret(utf8: words[2])))
            case "guest": try await container.login(.guest)
            case "logout": try await container.logout()
            case "switch" where words.count == 2:
                guard let type = AuthType(rawValue: words[1]) else { return Self.usage }
                try await container.switchAuthType(type)
            case "delete":
                let account = AccountAuth(service: container.service) { try await server.deleteAccount($0) }
                try await account.deleteAccount()
            default: return Self.usage
            }
        } catch is DemoServer.Refused {
            return "The server refuses that"
        } catch {
            return "\(error)"
        }
        await container.refreshState()
        return text
    }

    static let usage =
        "Commands: login NAME PASSWORD, guest, logout, switch session|jwt|oauth2, delete, quit"
}
