import TokenVault
import TokenVaultAuth

/// An app that signs in with `AuthContainer`. It keeps its session in memory; a real app passes `FileTokenStorage` or
/// `SecretServiceTokenStorage`.
@main
struct SignInApp {
    @MainActor static func main() async throws {
        let server = DemoServer()
        let services = AppServices(storage: InMemoryTokenStorage(service: "com.example.app"), server: server)
        let screen = SignInScreen(
            container: try AuthContainer(factory: services, authType: .jwt), server: server)
        await screen.container.refreshState()
        print(SignInScreen.usage)
        print("For this example: login alice not a real password")
        print(screen.text)
        while let line = readLine(), line != "quit" { print(await screen.run(line)) }
    }
}
