import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

/// A store that tests put into each state: what a keyring goes through.
final class ScriptedStore: Sendable {
    let name: String
    let vault = InMemoryVault()
    private let failure = Mutex<TokenStorageError.Code?>(nil)
    let looks = Mutex(0)
    /// Whether opening fails rather than looking.
    let failsWhenOpened: Bool

    init(_ name: String, failsWhenOpened: Bool = false) {
        self.name = name
        self.failsWhenOpened = failsWhenOpened
    }

    func fail(with code: TokenStorageError.Code?) { failure.withLock { $0 = code } }

    var candidate: StorageCandidate {
        StorageCandidate(
            name: name,
            probe: { () throws(TokenStorageError) in
                self.looks.withLock { $0 += 1 }
                if !self.failsWhenOpened { try self.check() }
                return .present
            },
            storage: { (service) throws(TokenStorageError) in
                try self.check()
                return self.vault.storage(service: service)
            })
    }

    private func check() throws(TokenStorageError) {
        if let code = failure.withLock({ $0 }) {
            throw TokenStorageError(code, operation: "open", backend: "scripted")
        }
    }
}

@Suite struct StorageChooserTests {
    private let sandbox: Sandbox
    private let keyring = ScriptedStore("keyring")
    private let other = ScriptedStore("other")
    private let service = "com.example.app"

    init() throws { sandbox = try Sandbox() }

    private var memory: FilePath { sandbox.path.appending("choices") }
    private var vault: StorageCandidate {
        .file(at: sandbox.vault, configuration: sandbox.configuration, unlockedWith: keyFile)
    }
    private func chooser(
        _ candidates: [StorageCandidate], remembers: Bool = true,
        unusable: StorageChooser.UnusableRule = .stop
    ) -> StorageChooser {
        StorageChooser(candidates, rememberingIn: remembers ? memory : nil, unusable: unusable)
    }

    private func code(
        _ body: () async throws(TokenStorageError) -> StorageChoice
    ) async -> TokenStorageError.Code? {
        do {
            _ = try await body()
            return nil
        } catch { return error.code }
    }

    @Test func theFirstThatIsThereIsPicked() async throws {
        let both = chooser([keyring.candidate, other.candidate], remembers: false)
        let first = try await both.choose(service: service)
        #expect(first.name == "keyring" && !first.isRemembered)
        #expect(first.findings.map(\.finding) == [.isEmpty, .isEmpty])
        keyring.fail(with: .unavailable)
        let second = try await both.choose(service: service)
        #expect(second.name == "other" && second.findings.count == 2)
        guard case .isUnavailable(let error) = second.findings[0].finding else {
            Issue.record("\(second)")
            return
        }
        #expect(error.code == .unavailable && error.backend == "keyring")
        #expect(second.description == "other (keyring: not available; other: empty)")
        other.fail(with: .unavailable)
        do {
            _ = try await both.choose(service: service)
            Issue.record("something was picked")
        } catch {
            #expect(error.code == .unavailable)
            #expect(error.underlying == "keyring: not available; other: not available")
            let rejected = ["keyring", "other"].map {
                TokenStorageError.Reason.RejectedCandidate(name: $0, code: .unavailable)
            }
            #expect(error.reason == .noCandidate(rejected))
        }
        #expect(
            await code { () throws(TokenStorageError) in try await chooser([]).choose(service: service) }
                == .unavailable)
    }

    @Test func whatHasTheItemsIsPickedBeforeWhatIsEmpty() async throws {
        try await other.vault.storage(service: service).store(token: "fake", for: "token")
        let both = chooser([keyring.candidate, other.candidate], remembers: false)
        let choice = try await both.choose(service: service)
        #expect(choice.name == "other")
        #expect(choice.findings.map(\.finding) == [.isEmpty, .holdsItems])
        #expect(try await choice.storage.retrieve(for: "token") == "fake")
        // Another service's items do not count.
        #expect(try await both.choose(service: "another").name == "keyring")
        try await keyring.vault.storage(service: service).store(token: "fake-too", for: "token")
        let first = try await both.choose(service: service)
        #expect(first.name == "keyring" && first.findings[1].finding == .notProbed)
        // Dark items count as items.
        other.vault.setLockState(.afterFirstUnlock)
        try await keyring.vault.storage(service: service).delete(for: "token")
        #expect(try await both.choose(service: service).name == "other")
    }

    @Test(arguments: [
        TokenStorageError.Code.locked, .wrongPassphrase, .corrupt, .timedOut, .notPermitted, .ioFailure,
    ])
    func lockedIsNeverTakenForAbsent(_ reason: TokenStorageError.Code) async throws {
        keyring.fail(with: reason)
        let both = chooser([keyring.candidate, other.candidate])
        #expect(
            await code { () throws(TokenStorageError) in try await both.choose(service: service) } == reason)
        #expect(other.looks.withLock { $0 } == 0)
        // A locked storage behind an empty one has the same effect: the items may be in it.
        let behind = chooser([other.candidate, keyring.candidate])
        #expect(
            await code { () throws(TokenStorageError) in try await behind.choose(service: service) } == reason
        )
        // Once a storage has the items, the later storages do not matter.
        try await other.vault.storage(service: service).store(token: "fake", for: "token")
        #expect(try await behind.choose(service: service).name == "other")
        try await chooser([other.candidate]).forget(service: service)
        let passing = chooser([keyring.candidate, other.candidate], remembers: false, unusable: .skip)
        let choice = try await passing.choose(service: service)
        #expect(choice.name == "other")
        guard case .isUnusable(let error) = choice.findings[0].finding else {
            Issue.record("\(choice)")
            return
        }
        #expect(error.code == reason && error.backend == "keyring")
    }

    @Test func whatGoesAwayWhenItIsOpenedWasThere() async throws {
        let fragile = ScriptedStore("fragile", failsWhenOpened: true)
        fragile.fail(with: .unavailable)
        let both = chooser([fragile.candidate, other.candidate])
        #expect(
            await code { () throws(TokenStorageError) in try await both.choose(service: service) }
                == .unavailable)
        #expect(other.looks.withLock { $0 } == 0)
    }

    @Test func aChoiceIsKept() async throws {
        // Chooses in a desktop session first …
        let both = chooser([keyring.candidate, other.candidate])
        let first = try await both.choose(service: service)
        #expect(first.name == "keyring" && first.isRemembered)
        try await first.storage.store(token: "fake", for: "token")
        // … then in an SSH session. A second store would hide the token in the first one, so the choice
        // fails.
        keyring.fail(with: .unavailable)
        #expect(
            await code { () throws(TokenStorageError) in try await both.choose(service: service) }
                == .unavailable)
        #expect(
            await code { () throws(TokenStorageError) in
                try await chooser([keyring.candidate, other.candidate], unusable: .skip)
                    .choose(service: service)
            } == .unavailable)
        #expect(
            await code { () throws(TokenStorageError) in
                try await chooser([other.candidate]).choose(service: service)
            } == .unavailable)
        // The choices of other services are not affected.
        #expect(try await both.choose(service: "another").name == "other")
        keyring.fail(with: nil)
        let again = try await both.choose(service: service)
        #expect(again.name == "keyring" && again.isRemembered)
        #expect(again.findings.map(\.finding) == [.holdsItems, .notProbed])
        // An empty storage stays chosen: signing in again uses the same place.
        try await again.storage.delete(for: "token")
        #expect(try await both.choose(service: service).name == "keyring")
        #expect(try await both.choose(service: "another").name == "other")
    }

    @Test func aChoiceIsChangedOnPurpose() async throws {
        let both = chooser([keyring.candidate, other.candidate])
        let first = try await both.choose(service: service)
        try await first.storage.store(token: "fake", for: "token")
        let moved = await TokenMigration(
            from: first.storage, to: other.vault.storage(service: service),
            options: .init(deletesAtSource: true)
        ).run()
        try #require(moved.isComplete)
        try await both.remember("other", service: service)
        let second = try await both.choose(service: service)
        #expect(try await second.storage.retrieve(for: "token") == "fake")
        try await second.storage.deleteAll()
        try await both.forget(service: service)
        try await both.forget(service: service)
        #expect(try await both.choose(service: service).name == "keyring")
        do {
            try await both.remember("unknown", service: service)
            Issue.record("remembered")
        } catch { #expect(error.code == .invalidArgument) }
    }

    @Test func manyWhoChooseAtOnceChooseTheSame() async throws {
        // Each chooser prefers another storage, as in sessions with and without a bus.
        let (one, two) = (
            chooser([keyring.candidate, other.candidate]), chooser([other.candidate, keyring.candidate])
        )
        let service = service
        let names = await withTaskGroup(of: String?.self) { group in
            for index in 0..<16 {
                group.addTask {
                    try? await (index.isMultiple(of: 2) ? one : two).choose(service: service).name
                }
            }
            return await group.reduce(into: [String?]()) { $0.append($1) }
        }
        #expect(names.count == 16 && Set(names).count == 1 && names[0] != nil, "\(names)")
    }

    @Test func whatIsRememberedIsReadWithCare() async throws {
        let one = chooser([keyring.candidate])
        _ = try await one.choose(service: service)
        let directory = try PosixDirectory(memory)
        let names = try directory.names()
        #expect(names.count == 1 && !names[0].contains("example"))
        #expect(try #require(try directory.attributes(of: names[0])).mode == 0o600)
        for damage in ["", "keyring", "key\u{7}ring\n", "\n", String(repeating: "x", count: 5_000) + "\n"] {
            try directory.remove(names[0])
            try directory.open(names[0], .create).write(Array(damage.utf8), at: 0)
            #expect(
                await code { () throws(TokenStorageError) in try await one.choose(service: service) }
                    == .corrupt)
        }
        try await one.forget(service: service)
        #expect(try await one.choose(service: service).isRemembered)
        // Without a writable place, the choice says that it is not remembered.
        let nowhere = StorageChooser([keyring.candidate], rememberingIn: "/proc/none")
        #expect(try await !nowhere.choose(service: service).isRemembered)
        for wrong in [[keyring.candidate, keyring.candidate], [ScriptedStore("").candidate]] {
            #expect(
                await code { () throws(TokenStorageError) in
                    try await chooser(wrong).choose(service: service)
                } == .invalidArgument)
        }
        #expect(
            await code { () throws(TokenStorageError) in
                try await one.choose(service: String(repeating: "s", count: 1_025))
            } == .invalidArgument)
    }

    // MARK: - The file vault as a candidate

    @Test func aVaultIsMadeOnlyWhenItIsPickedAndWanted() async throws {
        #expect(
            await code { () throws(TokenStorageError) in
                try await chooser([vault]).choose(service: service)
            } == .unavailable)
        let making = StorageCandidate.file(
            at: sandbox.vault, configuration: sandbox.configuration, createsWhenMissing: true,
            unlockedWith: keyFile)
        let onDesktop = try await chooser([keyring.candidate, making], remembers: false).choose(
            service: service)
        #expect(onDesktop.name == "keyring")
        #expect(try !SmallFile.exists(sandbox.vault))
        let choice = try await chooser([making]).choose(service: service)
        #expect(choice.name == "file" && choice.isRemembered)
        try await choice.storage.store(token: "fake", for: "token")
        #expect(try await chooser([making]).choose(service: service).storage.retrieve(for: "token") == "fake")
        #expect(try await chooser([vault]).choose(service: service).storage.retrieve(for: "token") == "fake")
    }

    @Test func aVaultThatIsGoneIsNotMadeAnew() async throws {
        let making = StorageCandidate.file(
            at: sandbox.vault, configuration: sandbox.configuration, createsWhenMissing: true,
            unlockedWith: keyFile)
        let choice = try await chooser([making]).choose(service: service)
        try await choice.storage.store(token: "fake", for: "token")
        let directory = try PosixDirectory(sandbox.vault.removingLastComponent())
        try directory.rename("test.vault", to: "elsewhere", replacing: false)
        for remembers in [true, false] {
            let chooser = chooser([making, other.candidate], remembers: remembers)
            let error = await #expect(throws: TokenStorageError.self) {
                try await chooser.choose(service: service)
            }
            #expect(error?.code == .unavailable)
            #expect(error?.reason == .vaultMissing(path: sandbox.vault.string))
        }
        try directory.rename("elsewhere", to: "test.vault", replacing: false)
        #expect(try await chooser([making]).choose(service: service).storage.retrieve(for: "token") == "fake")
        // A vault that was destroyed on purpose is created again, once its choice is forgotten.
        try BlockingFileVault.destroy(at: sandbox.vault, configuration: sandbox.configuration)
        #expect(
            await code { () throws(TokenStorageError) in
                try await chooser([making]).choose(service: service)
            } == .unavailable)
        try await chooser([making]).forget(service: service)
        #expect(try await chooser([making]).choose(service: service).name == "file")
    }

    @Test func aVaultThatDoesNotOpenIsThere() async throws {
        let made = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let wrong = StorageCandidate.file(
            at: sandbox.vault, configuration: sandbox.configuration,
            unlockedWith: .keyFile(Secret(utf8: "not the key: 0123456789abcdef0123456789abcdef")))
        let noFile = StorageCandidate.file(
            at: sandbox.vault, configuration: sandbox.configuration,
            unlockedWith: try .keyFile(at: "/nonexistent/key"))
        for (candidate, expected) in [
            (wrong, TokenStorageError.Code.wrongPassphrase), (noFile, .unavailable),
        ] {
            #expect(
                await code { () throws(TokenStorageError) in
                    try await chooser([candidate, other.candidate]).choose(service: service)
                } == expected)
            #expect(other.looks.withLock { $0 } == 0)
        }
        let own = FileVault(made)
        #expect(try await chooser([.file(own)]).choose(service: service).name == "file")
        let locked = try FileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        #expect(
            await code { () throws(TokenStorageError) in
                try await chooser([.file(locked), other.candidate]).choose(service: service)
            } == .locked)
    }

    @Test func keyFilesAreReadAsVaultctlMakesThem() throws {
        let key = String(repeating: "0123456789abcdef", count: 4)
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: .keyFile(Secret(utf8: key)), configuration: sandbox.configuration
        )
        let path = sandbox.path.appending("key")
        try SmallFile.create(path, Array("\(key)\n".utf8))
        try vault.unlock(with: .keyFile(at: path))
        // A random key of the least length may end in a newline.
        let random = Array(repeating: UInt8(7), count: 31) + [UInt8(ascii: "\n")]
        _ = try vault.addSlot(.keyFile(Secret(random)), scope: .all)
        let raw = sandbox.path.appending("raw")
        try SmallFile.create(raw, random)
        try vault.unlock(with: .keyFile(at: raw))
        let short = sandbox.path.appending("short")
        try SmallFile.create(short, Array(String(repeating: "x", count: 31).utf8))
        let long = sandbox.path.appending("long")
        try SmallFile.create(long, [UInt8](repeating: 1, count: 4_097))
        for (path, code) in [
            (short, TokenStorageError.Code.invalidArgument), (long, .invalidArgument),
            ("/none", .unavailable),
        ] {
            let error = #expect(throws: TokenStorageError.self) { try UnlockMethod.keyFile(at: path) }
            #expect(error?.code == code && error?.operation == "key file")
        }
    }
}
