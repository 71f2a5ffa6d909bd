import TestLanes
import Testing
import TokenVault

/// The real keyring, as a program that uses the library meets it.
@Suite(.tags(.desktop), .from(.usual)) struct KeyringTests {
    private let desktop: PrivateDesktop

    init() throws { desktop = try PrivateDesktop.withKeyring() }

    @Test func whatIsStoredIsReadAndDeleted() async throws {
        let storage = desktop.service().storage(service: "com.example.app")
        #expect(try await storage.lockState() == .unlocked)
        #expect(try await storage.retrieve(for: "access_token") == nil)
        let first = try await storage.store(token: "fake-token-1", for: "access_token")
        let second = try await storage.store(token: "fake-token-2", for: "access_token")
        #expect(second > first)
        #expect(try await storage.retrieve(for: "access_token") == "fake-token-2")
        let another = desktop.service().storage(service: "com.example.app").blocking
        #expect(try another.retrieve(for: "access_token") == "fake-token-2")
        #expect(try await storage.delete(for: "access_token"))
        #expect(try another.retrieve(for: "access_token") == nil)
    }

    @Test(arguments: ["not-a-real-password", ""])
    func everyValueSurvivesARestart(_ password: String) throws {
        let path = try #require(try desktop.tell("create_collection", "Values", password).first)
        let service = SecretService(configuration: desktop.configuration(collection: .named("Values")))
        let storage = service.storage(service: "app").blocking
        for (number, value) in Self.values.enumerated() {
            try storage.store(
                value, for: "value \(number)",
                details: TokenDetails(label: " label\\ \(number) ", attributes: [" name\\": " value\\ "]))
        }
        try storage.commit(
            [.rename("value 0", to: " renamed\\ "), .rename(" renamed\\ x", to: "y")].dropLast())
        let before = try storage.list()
        try desktop.tell("restart_keyring")
        try desktop.tell("unlock", path, password)
        #expect(try storage.list() == before)
        for (number, value) in Self.values.enumerated() where number > 0 {
            #expect(try storage.secret(for: "value \(number)") == value, "value \(number)")
        }
        #expect(try storage.secret(for: " renamed\\ ") == Self.values[0])
    }

    private static let values: [Secret] =
        [
            "", "text", " lead", "trail ", "a\nb", "\n", "\r\n", "\\", "a\\nb", "\u{0}", "\u{7f}", "\u{85}",
            "é", "e\u{301}", "[group]", "#", "a=b;c", "\u{feff}", "👩🏽‍🚀",
        ].map { Secret(utf8: $0) } + [Secret(Array(UInt8.min...UInt8.max)), Secret([0xff, 0xfe])]

    @Test func namesInEveryFormAreApart() throws {
        let storage = desktop.service().storage(service: "app").blocking
        let names = ["caf\u{e9}", "cafe\u{301}", "日本語", "עברית", "ไทย", "👩🏽‍🚀", " ", "a b", "A B"]
        for name in names { try storage.store(token: "of \(name)", for: TokenKey(name)) }
        for name in names { #expect(try storage.retrieve(for: TokenKey(name)) == "of \(name)") }
        #expect(try storage.list().items.count == names.count)
    }

    @Test func aSecretOfOneMebibyteIsKept() throws {
        let storage = desktop.service().storage(service: "app").blocking
        let secret = Secret((0..<Secret.maximumLength).map { UInt8(truncatingIfNeeded: $0 % 251) })
        try storage.store(secret, for: "large")
        #expect(try storage.secret(for: "large") == secret)
        try desktop.tell("restart_keyring")
        #expect(try storage.secret(for: "large") == secret)
    }

    @Test func otherPoliciesAreRefusedWithTheWayToThem() throws {
        let storage = desktop.service().storage(service: "app").blocking
        #expect(storage.supportedPolicies == [.whenUnlocked])
        let error = #expect(throws: TokenStorageError.self) {
            try storage.store(token: "fake", for: "key", policy: .whenUnlockedThisDeviceOnly)
        }
        #expect(error?.code == .unsupportedPolicy)
        #expect(error?.advice?.contains("file vault") == true)
    }

    @Test func aWriterThatWaitsForAnotherIsBounded() throws {
        let hasty = SecretService(configuration: desktop.configuration(timeout: .milliseconds(300)))
            .storage(service: "app").blocking
        let patient = desktop.service().storage(service: "app").blocking
        #expect(try patient.retrieve(for: "key") == nil)
        try desktop.tell("own_writer_name")
        #expect(code { try hasty.store(token: "fake", for: "key") } == .timedOut)
        #expect(try patient.retrieve(for: "key") == nil)
        try desktop.tell("release_writer_name")
        try patient.store(token: "fake", for: "key")
        #expect(try patient.retrieve(for: "key") == "fake")
    }

    @Test func aServiceThatIsPausedDoesNotHangAndLosesNothing() throws {
        let hasty = SecretService(configuration: desktop.configuration(timeout: .milliseconds(500)))
            .storage(service: "app").blocking
        let patient = desktop.service().storage(service: "app").blocking
        try patient.store(token: "before", for: "key")
        try desktop.tell("pause_keyring")
        #expect(code { try hasty.retrieve(for: "key") } == .timedOut)
        #expect(code { try hasty.metadata(for: "key") } == .timedOut)
        try desktop.tell("resume_keyring")
        #expect(try patient.retrieve(for: "key") == "before")
    }
}
