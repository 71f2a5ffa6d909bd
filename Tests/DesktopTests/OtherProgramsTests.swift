import TestLanes
import Testing
import TokenVault

/// What other programs of the desktop do to the same keyring.
@Suite(.tags(.desktop), .from(.usual)) struct OtherProgramsTests {
    private let desktop: PrivateDesktop
    private let storage: SecretServiceTokenStorage
    private static let ours = ["xdg:schema", "org.tokenvault.Token", "service", "app", "account", "key"]

    init() throws {
        desktop = try PrivateDesktop.withKeyring()
        storage = desktop.service().storage(service: "app")
    }

    @Test func aPersonFindsATokenWithSecretTool() throws {
        try storage.blocking.store(token: "fake-token", for: "access_token", label: "Example")
        #expect(
            try desktop.run("secret-tool", "lookup", "service", "app", "account", "access_token")
                == "fake-token")
    }

    @Test func anItemOfAnotherSchemaIsNotOurs() throws {
        #expect(
            try desktop.run(
                "secret-tool", "store", "--label=theirs", "service", "app", "account", "key", input: "theirs")
                != nil)
        #expect(try storage.blocking.retrieve(for: "key") == nil)
        try storage.blocking.store(token: "ours", for: "key")
        #expect(try storage.blocking.retrieve(for: "key") == "ours")
        #expect(try storage.blocking.delete(for: "key"))
        // The other program's item is still there.
        #expect(try desktop.run("secret-tool", "lookup", "service", "app", "account", "key") == "theirs")
    }

    @Test func anItemOfMoreAttributesIsTheSameKeyAndNoOther() throws {
        try desktop.tell("create", "label", "more", ["extra", "1"])
        try desktop.tell("create", "label", "other key", ["extra", "1"], account: "key two")
        #expect(try storage.blocking.retrieve(for: "key") == "more")
        #expect(try storage.blocking.metadata(for: "key")?.attributes == ["extra": "1"])
        #expect(try storage.blocking.metadata(for: "key")?.label == "label")
        try storage.blocking.store(token: "ours", for: "key")
        #expect(try storage.blocking.retrieve(for: "key") == "ours")
        #expect(try storage.blocking.retrieve(for: "key two") == "other key")
        #expect(try storage.blocking.list().items.count == 2)
    }

    @Test func duplicatesAreResolvedAlikeAndRepaired() throws {
        for number in 0..<4 {
            try desktop.tell("create", "label \(number)", "fake \(number)", ["number", "\(number)"])
        }
        let first = try storage.blocking.item(for: "key")
        let another = desktop.service().storage(service: "app").blocking
        #expect(try another.item(for: "key") == first)
        #expect(try storage.blocking.list().items.count == 1)
        try another.store(token: "new", for: "key")
        #expect(try storage.blocking.retrieve(for: "key") == "new")
        #expect(try desktop.tell("items", Self.ours).count == 1)
    }

    /// More than are looked at one by one. What is known of ours stays known: one search says that none of them is ours.
    @Test func manyItemsOfAnotherProgramMakeNoReadSearch() throws {
        let keys = ["key", "key two", "key three"]
        for key in keys { try storage.blocking.store(token: "fake \(key)", for: TokenKey(key)) }
        try makeMany(of: "com.example.Theirs")
        // The first answer arrives behind all signals about the new items. The second call looks at these
        // signals.
        for _ in 0..<2 { #expect(try storage.blocking.retrieve(for: "key") == "fake key") }
        try desktop.tell("start_monitor")
        for key in keys { #expect(try storage.blocking.retrieve(for: TokenKey(key)) == "fake \(key)") }
        try storage.blocking.store(token: "fake", for: "key")
        #expect(try desktop.tell("stop_monitor", "SearchItems", "GetSecret") == ["0", "3"])
    }

    @Test(arguments: ["com.example.Theirs", "org.tokenvault.Token"])
    func amongManyItemsOfAnotherProgramANewerOneOfOursIsFound(_ schema: String) throws {
        try storage.blocking.store(token: "old", for: "key")
        #expect(try storage.blocking.retrieve(for: "key") == "old")
        try makeMany(of: schema)
        try desktop.service().storage(service: "app").blocking.store(
            token: "new", for: "key", attributes: ["made": "elsewhere"])
        #expect(try storage.blocking.retrieve(for: "key") == "new")
        #expect(try storage.blocking.list().items.count == 1)
    }

    private func makeMany(of schema: String) throws {
        for number in 0..<210 {
            let words = ["xdg:schema", schema, "service", "theirs", "account", "\(number)"]
            try desktop.tell("create", ["label", "theirs"] + words)
        }
    }

    @Test(arguments: [
        "(generation \((1 << 52) - 2))", "(generation 1, written \(UInt64.max))",
        "(generation \((1 << 52) - 2), written 4503599626)",
    ])
    func aGenerationThatNoClockMadeIsNotBelieved(_ planted: String) async throws {
        var events = storage.changes().makeAsyncIterator()
        let first = try await storage.store(token: "fake", for: "other")
        #expect(await events.next() == .stored("other", first))
        try desktop.tell("create", "planted \(planted)", "fake", ["extra", "1"])
        #expect(key(of: await events.next()) == "key")
        #expect(try #require(try storage.blocking.metadata(for: "key")).generation.rawValue < 1 << 51)
        // The planted generation does not affect later commits.
        let both = try #require(
            try await storage.commit([
                .store(Secret(utf8: "new"), for: "key"), .store(Secret(utf8: "new"), for: "other"),
            ]).generation)
        #expect(both > first && both.rawValue < 1 << 51)
        for key in ["key", "other"] as [TokenKey] { #expect(await events.next() == .stored(key, both)) }
        #expect(try storage.blocking.delete(for: "key"))
        guard case .deleted("key", let deleted)? = await events.next() else {
            Issue.record("no event for the deletion")
            return
        }
        // The generation of the planted item is the end of its second.
        let another = desktop.service().storage(service: "app").blocking
        var last = deleted
        while last <= deleted { last = try another.store(token: "newer", for: "key") }
        #expect(await events.next() == .stored("key", last))
    }

    /// A program that tells of commits that there were not.
    @Test func forgedNoticesSilenceNothingAndHoldUpNoList() async throws {
        var events = storage.changes().makeAsyncIterator()
        let first = try await storage.store(token: "fake", for: "key")
        #expect(await events.next() == .stored("key", first))
        try desktop.tell("forge_notices", "app", "\(first.rawValue + 40_000_000_000)", "key", "1")
        let another = desktop.service().storage(service: "app").blocking
        let second = try another.store(token: "newer", for: "key")
        #expect(await events.next() == .stored("key", second))
        try desktop.tell("start_forging", "app")
        for _ in 0..<20 { #expect(try storage.blocking.list().items.map(\.key) == ["key"]) }
    }

    /// Another keyring becomes the default one: every program that writes, writes there.
    @Test func theDefaultKeyringIsFollowed() throws {
        #expect(try storage.blocking.retrieve(for: "key") == nil)
        let other = try #require(try desktop.tell("create_collection", "Other", "not-a-real-password").first)
        try desktop.tell("set_default", other)
        try storage.blocking.compareAndStore(Secret([1]), for: "key", expected: nil)
        let another = desktop.service().storage(service: "app").blocking
        #expect(code { try another.compareAndStore(Secret([2]), for: "key", expected: nil) } == .conflict)
    }

    @Test func aKeyringThatWasDeletedIsNotLookedForForEver() throws {
        let one = try #require(try desktop.tell("create_collection", "One", "not-a-real-password").first)
        let two = try #require(try desktop.tell("create_collection", "Two", "not-a-real-password").first)
        try desktop.tell("set_default", one)
        let service = desktop.service()
        let storage = service.storage(service: "app").blocking
        for _ in 0..<3 { try storage.store(token: "fake", for: "key") }
        #expect(try service.servicesBlocking().services == ["app"])
        try desktop.tell("delete_collection", one)
        try desktop.tell("set_default", two)
        #expect(try service.servicesBlocking().services == [])
        try storage.store(token: "new", for: "key")
        #expect(try storage.retrieve(for: "key") == "new")
    }

    @Test func aPolicyThatIsNotKnownIsNotWeakened() async throws {
        try desktop.tell("create", "x", "fake", ["tokenvault:policy", "when-the-moon-is-full"])
        #expect(code { try storage.blocking.retrieve(for: "key") } == .unsupportedFormat)
        #expect(code { try storage.blocking.item(for: "key") } == .unsupportedFormat)
        try storage.blocking.store(token: "ours", for: "another")
        let destination = InMemoryVault()
        let summary = await TokenMigration(
            from: desktop.service(), to: destination, options: .init(deletesAtSource: true)
        ).run()
        #expect(summary.copied == 1 && summary.remaining.map(\.code) == [.unsupportedFormat], "\(summary)")
        #expect(try desktop.tell("items", Self.ours).count == 1)
    }

    @Test func whatNoCallerCouldHaveWrittenIsNotOursOrMadeFit() async throws {
        let schema = ["xdg:schema", "org.tokenvault.Token"]
        try desktop.tell("create", ["x", "fake"] + schema + ["service", "bad\u{1b}[2J", "account", "key"])
        try desktop.tell("create", ["x", "fake"] + schema + ["service", "app", "account", "bad\u{7}key"])
        try desktop.tell("create", ["x", "fake"] + schema + ["service", "", "account", "key"])
        let others = [
            "tokenvault:expires", "9223372036854775807", "tokenvault:created", "-9223372036854775808",
            "bell", "\u{7}", "fit", "yes",
        ]
        try desktop.tell("create", "a\u{1b}[2Jlabel", "fake", others)
        let listed = try storage.blocking.list().items
        let item = try #require(listed.first)
        #expect(listed.count == 1 && item.key == "key")
        #expect(item.label == "a [2Jlabel" && item.attributes == ["bell": "\u{7}", "fit": "yes"])
        #expect(item.expires == nil && item.created == item.modified)
        #expect(try await desktop.service().services().services == ["app"])
        // An item that can be read can be written.
        try storage.blocking.store(token: "new", for: "key")
        #expect(try storage.blocking.metadata(for: "key")?.label == "a [2Jlabel")
    }

    @Test func deletingDeletesEveryDuplicate() throws {
        for number in 0..<3 { try desktop.tell("create", "x", "fake", ["number", "\(number)"]) }
        #expect(try storage.blocking.delete(for: "key"))
        #expect(try storage.blocking.retrieve(for: "key") == nil)
        #expect(try desktop.tell("items", Self.ours) == [""])
    }

    @Test func aCompareAndStoreNoticesAnEdit() throws {
        let generation = try storage.blocking.store(token: "ours", for: "key")
        let path = try #require(try desktop.tell("items", Self.ours).first)
        try desktop.tell("set_label", path, "edited")
        let error = #expect(throws: TokenStorageError.self) {
            try storage.blocking.compareAndStore(Secret([1]), for: "key", expected: generation)
        }
        #expect(error?.code == .conflict)
        let metadata = try #require(try storage.blocking.metadata(for: "key"))
        #expect(metadata.label == "edited" && metadata.generation == error?.generation)
        try storage.blocking.compareAndStore(Secret([2]), for: "key", expected: metadata.generation)
        #expect(try storage.blocking.metadata(for: "key")?.label == "edited")
    }

    @Test func anItemThatAnotherProgramMovesIsNeverReadAsThisKey() throws {
        try storage.blocking.store(token: "of the key", for: "key")
        #expect(try storage.blocking.retrieve(for: "key") == "of the key")
        let path = try #require(try desktop.tell("items", Self.ours).first)
        try desktop.tell(
            "set_attributes", path, "xdg:schema", "org.tokenvault.Token", "service", "app", "account", "moved"
        )
        #expect(try storage.blocking.retrieve(for: "key") == nil)
        #expect(try storage.blocking.retrieve(for: "moved") == "of the key")
    }

    @Test(.timeLimit(.minutes(20)))
    func whatOtherProgramsChangeIsTold() async throws {
        try await storage.store(token: "ours", for: "key")
        let changes = storage.changes()
        var events = changes.makeAsyncIterator()
        let last = try await storage.store(token: "ours again", for: "key")
        #expect(await events.next() == .stored("key", last))
        let path = try #require(try desktop.tell("items", Self.ours).first)
        try desktop.tell("set_label", path, "edited")
        guard case .stored("key", let edited)? = await events.next() else {
            Issue.record("no event for the edit")
            return
        }
        #expect(edited > last)
        try desktop.tell("delete", path)
        guard case .deleted("key", let deleted)? = await events.next() else {
            Issue.record("no event for the deletion")
            return
        }
        #expect(deleted > edited)
    }

    @Test(.timeLimit(.minutes(20)))
    func aServiceThatWentAndCameBackIsToldAsAGap() async throws {
        let changes = storage.changes()
        try await storage.store(token: "fake", for: "key")
        var events = changes.makeAsyncIterator()
        #expect(await events.next() != nil)
        try desktop.tell("restart_keyring")
        #expect(await events.next() == .overflowed)
        let generation = try await storage.store(token: "fake", for: "key")
        #expect(await events.next() == .stored("key", generation))
    }
}

/// The key that an event is about.
private func key(of event: TokenEvent?) -> TokenKey? {
    switch event {
    case .stored(let key, _), .deleted(let key, _): key
    default: nil
    }
}

extension PrivateDesktop {
    /// Another program makes an item of ours, with `more` attributes.
    fileprivate func tell(
        _ command: String, _ label: String, _ secret: String, _ more: [String], account: String = "key"
    ) throws {
        let words = ["xdg:schema", "org.tokenvault.Token", "service", "app", "account", account]
        try tell(command, [label, secret] + words + more)
    }
}
