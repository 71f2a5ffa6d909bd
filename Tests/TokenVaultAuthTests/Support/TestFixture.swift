import Synchronization
import SystemPackage
import TokenVault
import TokenVaultAuth
import TokenVaultPlatform

#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// A clock that goes only when a test advances it.
final class ManualClock: Sendable {
    private let time = Mutex(Date(timeIntervalSince1970: 1_800_000_000))

    var now: Date { time.withLock { $0 } }
    func advance(by seconds: Double) { time.withLock { $0 += seconds } }
}

/// A door that is closed until it is opened.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }
    private let state = Mutex(State())

    func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    /// Whether it is closed still.
    var isClosed: Bool { state.withLock { !$0.isOpen } }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}

/// A list that many tasks add to.
final class Notes<Element: Sendable>: Sendable {
    private let notes = Mutex<[Element]>([])

    var all: [Element] { notes.withLock { $0 } }
    func add(_ note: Element) { notes.withLock { $0.append(note) } }
}

/// What a test's managers have in common.
struct TestFixture: Sendable {
    let clock = ManualClock()
    let pauses = Notes<Duration>()
    let vault: InMemoryVault
    let storage: InMemoryTokenStorage

    init() {
        vault = InMemoryVault()
        storage = vault.storage(service: "com.example.app")
    }

    /// The time of the clock, in seconds since 1970.
    var seconds: Double { clock.now.timeIntervalSince1970 }

    var configuration: TokenManager.Configuration {
        var configuration = TokenManager.Configuration()
        configuration.clock = { [clock] in clock.now }
        // A wait between attempts takes no real time, but advances the clock.
        configuration.sleep = { [clock, pauses] duration in
            pauses.add(duration)
            clock.advance(by: duration / .seconds(1))
        }
        configuration.leaseTimeout = .seconds(3_600)
        configuration.refreshTimeout = .seconds(3_600)
        return configuration
    }

    func manager(
        _ server: RotatingServer, storage: (any TokenStorage)? = nil, account: String = "work",
        _ change: (inout TokenManager.Configuration) -> Void = { _ in }
    ) -> TokenManager {
        var configuration = configuration
        change(&configuration)
        return TokenManager(
            storage: storage ?? self.storage, account: account, configuration: configuration,
            revokeRequestProvider: server.revoker, refreshRequestProvider: server.provider)
    }

    /// The tokens of a sign-in: the access token is good for `seconds`.
    func tokens(goodFor seconds: Double = 3_600, refresh: String? = "refresh-0") -> TokenInfo {
        TokenInfo(
            accessToken: "access-0", refreshToken: refresh,
            accessTokenExpiry: clock.now.addingTimeInterval(seconds))
    }

    /// The stored record as text; `nil` when there is none.
    func record(_ account: String = "work") async throws -> String? {
        try await storage.retrieve(for: "auth/session/\(account)")
    }
}

/// A vault file that several handles have open, as several processes would.
final class SharedVault {
    let directory: FilePath
    private let scratch: ScratchDirectory
    private let handles = Notes<BlockingFileVault>()
    private let key = Secret(utf8: "not a real key: 0123456789abcdef0123456789abcdef")

    init() throws {
        scratch = try ScratchDirectory(in: FilePath("/tmp"))
        directory = scratch.path
        try BlockingFileVault.create(at: path, unlockMethod: .keyFile(key), configuration: configuration)
            .close()
    }

    deinit { scratch.remove() }

    var path: FilePath { directory.appending("tokens.vault") }

    private var configuration: FileVaultConfiguration {
        FileVaultConfiguration(stateDirectory: directory.appending("state"), lockTimeout: .seconds(3_600))
    }

    /// A storage of a handle of its own.
    func storage() throws -> FileTokenStorage {
        let vault = try BlockingFileVault.open(at: path, configuration: configuration)
        try vault.unlock(with: .keyFile(key))
        handles.add(vault)
        return FileTokenStorage(vault, service: "com.example.app")
    }

    func lockAll() { for vault in handles.all { vault.lock() } }
    func unlockAll() throws { for vault in handles.all { try vault.unlock(with: .keyFile(key)) } }
}
