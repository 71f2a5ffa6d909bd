import Testing
import TokenVault
import TokenVaultAuth

@testable import SignInApp

/// The example app, command by command.
@MainActor @Suite struct SignInAppTests {
    private let server = DemoServer()
    private let storage = InMemoryTokenStorage(service: "com.example.app")

    private func screen(_ type: AuthType = .jwt) async throws -> SignInScreen {
        let services = AppServices(storage: storage, server: server)
        let screen = SignInScreen(
            container: try AuthContainer(factory: services, authType: type), server: server)
        await screen.container.refreshState()
        return screen
    }

    @Test(arguments: AuthType.allCases) func aSessionBeginsStaysAndEnds(_ type: AuthType) async throws {
        let screen = try await screen(type)
        #expect(screen.text == "Signed out (\(type))")
        if type != .oauth2 {
            #expect(await screen.run("login alice wrong") == "The server refuses that")
        }
        #expect(await screen.run("login alice not a real password") == "Signed in as Alice (\(type))")
        // Another start of the app finds the session.
        #expect(try await self.screen(type).text == "Signed in as Alice (\(type))")
        #expect(await screen.run("logout") == "Signed out (\(type))")
        #expect(try await self.screen(type).text == "Signed out (\(type))")
    }

    @Test func eachWayHasItsOwnSession() async throws {
        let screen = try await screen()
        #expect(await screen.run("login alice not a real password") == "Signed in as Alice (jwt)")
        #expect(await screen.run("switch session") == "Signed out (session)")
        #expect(await screen.run("guest") == "A guest")
        #expect(await screen.run("switch jwt") == "Signed in as Alice (jwt)")
        #expect(await screen.run("switch cookie") == SignInScreen.usage)
        #expect(await screen.run("") == SignInScreen.usage)
    }

    @Test func aDeletedAccountIsGone() async throws {
        let screen = try await screen()
        _ = await screen.run("login alice not a real password")
        #expect(await screen.run("delete") == "Signed out (jwt)")
        #expect(await screen.run("login alice not a real password") == "The server refuses that")
    }

    @Test func aDueTokenIsRefreshed() async throws {
        let screen = try await screen()
        _ = await screen.run("login alice not a real password")
        let manager = screen.container.service.manager
        let first = try await manager.validAccessToken()
        try await screen.container.service.refreshAuth()
        #expect(try await manager.validAccessToken() != first)
    }
}
