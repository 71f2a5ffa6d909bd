import TestLanes
import Testing
import TokenVault
import TokenVaultCrypto
import TokenVaultPlatform

@testable import TokenVaultDesktop

/// A writer that died in the middle of a commit of several changes.
@Suite(.tags(.desktop), .from(.usual)) struct UnfinishedCommitTests {
    private let desktop: PrivateDesktop

    init() throws { desktop = try PrivateDesktop.withKeyring() }

    @Test(arguments: 0...3)
    func isWholeToReadersAndFinishedByTheNextWriter(_ made: Int) throws {
        let before = desktop.service().storage(service: "app").blocking
        for key in ["replaced", "deleted", "kept"] { try before.store(token: "old", for: TokenKey(key)) }
        let reader = desktop.service().storage(service: "app").blocking
        #expect(try reader.retrieve(for: "replaced") == "old")

        let generation = try die(after: made)
        let fresh = desktop.service().storage(service: "app").blocking
        for storage in [before, reader, fresh] {
            #expect(try storage.retrieve(for: "replaced") == "new\n")
            #expect(try storage.retrieve(for: "stored") == "new")
            #expect(try storage.retrieve(for: "deleted") == nil)
            #expect(try storage.retrieve(for: "kept") == "old")
            #expect(try storage.item(for: "replaced")?.metadata.generation == generation)
            #expect(try storage.item(for: "replaced")?.metadata.label == "label")
            #expect(try storage.metadata(for: "deleted") == nil)
            #expect(try storage.list().items.map(\.key) == ["kept", "replaced", "stored"])
        }
        #expect(
            code {
                try fresh.compareAndStore(Secret([1]), for: "stored", expected: nil)
            } == .conflict)

        // The refused write has finished the earlier commit.
        #expect(try desktop.tell("items", "xdg:schema", CommitIntent.schema) == [""])
        let last = desktop.service().storage(service: "app").blocking
        #expect(try last.retrieve(for: "replaced") == "new\n")
        #expect(try last.list().items.map(\.key) == ["kept", "replaced", "stored"])
        #expect(try last.metadata(for: "stored")?.generation == generation)
        #expect(try desktop.run("secret-tool", "lookup", "service", "app", "account", "stored") == "new")
    }

    @Test func anotherServicesCommitIsNotMixedIn() throws {
        let other = desktop.service().storage(service: "other").blocking
        try other.store(token: "other's", for: "replaced")
        _ = try die(after: 0)
        #expect(try other.retrieve(for: "replaced") == "other's")
        #expect(try other.list().items.count == 1)
    }

    /// The items are newer than the intent: another program put the intent back, or the service did not
    /// remove it.
    @Test func oneThatItsItemsHaveOutdoneSaysNothing() throws {
        _ = try die(after: 0, generation: 5)
        let storage = desktop.service().storage(service: "app").blocking
        // No item is as new as the intent yet.
        #expect(try storage.retrieve(for: "replaced") == "new\n")
        try desktop.tell(
            "create", "x", "newer", "xdg:schema", "org.tokenvault.Token", "service", "app", "account",
            "replaced")
        for reader in [storage, desktop.service().storage(service: "app").blocking] {
            #expect(try reader.retrieve(for: "replaced") == "newer")
            #expect(try reader.item(for: "replaced")?.secret == Secret(utf8: "newer"))
            #expect(try #require(try reader.metadata(for: "replaced")).generation > 5)
            #expect(try #require(try reader.list().items.first).generation > 5)
            #expect(try reader.retrieve(for: "stored") == "new")
        }
        try storage.store(token: "x", for: "another")
        #expect(try storage.retrieve(for: "replaced") == "newer")
        #expect(try desktop.tell("items", "xdg:schema", CommitIntent.schema) == [""])
    }

    /// What it holds is in the keyring as much as what is an item already.
    @Test func itsServiceIsAmongTheServices() async throws {
        _ = try die(after: 0)
        #expect(try desktop.service().servicesBlocking().services == ["app"])
        let destination = InMemoryVault()
        let summary = await TokenMigration(from: desktop.service(), to: destination).run()
        #expect(summary.isComplete && summary.copied == 2, "\(summary)")
    }

    @Test func anotherServicesCommitIsLeftToThatService() throws {
        _ = try die(after: 0)
        let other = desktop.service().storage(service: "other").blocking
        try other.store(token: "fake", for: "key")
        #expect(try desktop.tell("items", "xdg:schema", CommitIntent.schema) != [""])
        #expect(try desktop.service().storage(service: "app").blocking.retrieve(for: "stored") == "new")
    }

    @Test(arguments: [String(repeating: "k", count: 1_025), String(repeating: "é", count: 600)])
    func oneWithWhatNoCallerCouldGiveIsDamaged(_ key: String) throws {
        _ = try die(after: 0, key: TokenKey(key))
        let storage = desktop.service().storage(service: "app").blocking
        #expect(code { try storage.list() } == .corrupt)
        #expect(code { try storage.store(token: "fake", for: "key") } == .corrupt)
        try desktop.service().storage(service: "other").blocking.store(token: "fake", for: "key")
        #expect(try desktop.tell("items", "service", "app") == [""])
    }

    @Test func oneThatWouldNeverEndIsDamaged() throws {
        var intent = CommitIntent(service: "app", generation: 5)
        intent.outcomes = (0...CommitIntent.mostChanges).map { (TokenKey("key \($0)"), .deleted) }
        #expect(throws: FormatError.outOfBounds) { try CommitIntent(decoding: intent.encode()) }
        let storage = desktop.service().storage(service: "app").blocking
        try storage.store(token: "fake", for: "key 0")
        let error = #expect(throws: TokenStorageError.self) {
            try storage.commit(
                (0...CommitIntent.mostChanges).map { .store(Secret([1]), for: TokenKey("key \($0)")) })
        }
        #expect(error?.code == .tooLarge)
    }

    @Test func oneThatCannotBeReadHoldsUpItsOwnServiceAlone() throws {
        // A header of one byte with a newer version, and a text that is not Base64.
        for (secret, code) in [("AQAAAAI=", TokenStorageError.Code.unsupportedFormat), ("-", .corrupt)] {
            let path = try desktop.tell(
                "create", "x", secret, "xdg:schema", CommitIntent.schema, "tokenvault:service", "app")[0]
            let storage = desktop.service().storage(service: "app").blocking
            let error = #expect(throws: TokenStorageError.self) { try storage.retrieve(for: "key") }
            #expect(error?.code == code && error?.underlying?.contains("commit") == true)
            #expect(error.map { "\($0)" }?.contains("the vault") != true)
            #expect(throws: TokenStorageError.self) { try storage.store(token: "fake", for: "key") }
            let other = desktop.service().storage(service: "other").blocking
            try other.store(token: "fake", for: "key")
            #expect(try other.retrieve(for: "key") == "fake")
            try desktop.tell("delete", path)
            try storage.store(token: "fake", for: "key")
            #expect(try storage.retrieve(for: "key") == "fake")
        }
    }

    /// The commit is in a keyring that readers did not choose, and so is one of its items.
    @Test(arguments: 0...3)
    func oneOfSeveralKeyringsIsWholeAndFinishedWhereItIs(_ made: Int) throws {
        let other = try desktop.tell("create_collection", "Other", "fake horse")[0]
        let before = desktop.service().storage(service: "app").blocking
        for key in ["replaced", "deleted"] { try before.store(token: "old", for: TokenKey(key)) }
        _ = try die(after: made, in: .named("Other"))
        for storage in [before, desktop.service().storage(service: "app").blocking] {
            #expect(try storage.retrieve(for: "replaced") == "new\n")
            #expect(try storage.list().items.map(\.key) == ["replaced", "stored"])
        }
        try before.store(token: "fake", for: "next")
        #expect(try desktop.tell("items_in", other, "xdg:schema", CommitIntent.schema) == [""])
        #expect(try desktop.tell("items_in", other, "account", "stored") != [""])
        #expect(try desktop.tell("items", "account", "replaced") != [""])
        #expect(try before.list().items.map(\.key) == ["next", "replaced", "stored"])
    }

    /// What its items are, only it tells; it is not read before its keyring is unlocked.
    @Test(arguments: ["lock", "restart"])
    func oneInALockedKeyringIsLockedToItsServiceAlone(_ how: String) throws {
        let other = try desktop.tell("create_collection", "Other", "fake horse")[0]
        let used = desktop.service().storage(service: "app").blocking
        try used.store(token: "old", for: "replaced")
        #expect(try used.retrieve(for: "replaced") == "old")
        _ = try die(after: 0, in: .named("Other"))
        if how == "lock" {
            #expect(try used.retrieve(for: "replaced") == "new\n")
            try desktop.tell("lock", other)
        } else {
            try desktop.tell("restart_keyring")
        }
        for service in [used.secretService, desktop.service()] {
            let storage = service.storage(service: "app").blocking
            #expect(code { try storage.retrieve(for: "replaced") } == .locked)
            #expect(code { try storage.list() } == .locked)
            #expect(code { try storage.store(token: "newer", for: "replaced") } == .locked)
            let another = service.storage(service: "another").blocking
            try another.store(token: "fake", for: "key")
            #expect(try another.retrieve(for: "key") == "fake")
        }
        try desktop.tell("unlock", other, "fake horse")
        for storage in [used, desktop.service().storage(service: "app").blocking] {
            #expect(try storage.retrieve(for: "replaced") == "new\n")
        }
    }

    /// Two threads of a process have one connection, and so one name between them.
    @Test func oneCallAtATimeIsTheWriter() throws {
        let service = desktop.service()
        let storage = desktop.service().storage(service: "app").blocking
        let isWriting = Monitor(false)
        let mayEnd = Monitor(false)
        let isOver = Monitor(false)
        WorkerThread(name: "writer").run {
            _ = try? service.withKeyring(BusCall(timeout: .seconds(3_600))) {
                (access) throws(TokenStorageError) in
                try access.asWriter {
                    isWriting.announce { $0 = true }
                    mayEnd.wait { $0 ? () : nil }
                }
            }
            isOver.announce { $0 = true }
        }
        isWriting.wait { $0 ? () : nil }
        func write(_ call: BusCall) throws {
            try service.withKeyring(call) { (access) throws(TokenStorageError) in try access.asWriter {} }
        }
        #expect(code { try write(BusCall(timeout: .milliseconds(300))) } == .timedOut)
        // The first writer still owns the name, so no other process writes.
        let name = try desktop.run(
            "gdbus", "call", "--session", "--dest", "org.freedesktop.DBus", "--object-path", "/", "--method",
            "org.freedesktop.DBus.NameHasOwner", BusName.writer)
        #expect(name == "(true,)\n")
        mayEnd.announce { $0 = true }
        isOver.wait { $0 ? () : nil }
        try write(BusCall(timeout: .seconds(3_600)))
        try storage.store(token: "fake", for: "key")
    }

    /// Begins a commit, makes the first `made` of its changes, and goes away without another word.
    private func die(
        after made: Int, generation chosen: Generation? = nil, key: TokenKey? = nil,
        in collection: SecretServiceConfiguration.Collection = .default
    ) throws -> Generation {
        let service = SecretService(configuration: desktop.configuration(collection: collection))
        let call = BusCall(timeout: .seconds(3_600))
        return try service.withKeyring(call) { (access) throws(TokenStorageError) in
            try access.asWriter { () throws(TokenStorageError) in
                let current = try access.search("app", nil).ours
                let newest = current.values.map(\.item.metadata.generation.rawValue).max() ?? 0
                let generation = chosen ?? Generation(rawValue: newest + 1)
                var intent = CommitIntent(service: "app", generation: generation)
                func item(_ key: TokenKey, _ token: String, label: String?) -> TokenItem {
                    TokenItem(
                        metadata: TokenMetadata(
                            key: key, service: "app", policy: .whenUnlocked, label: label,
                            created: Microseconds.date(generation.rawValue),
                            modified: Microseconds.date(generation.rawValue), generation: generation),
                        secret: Secret(utf8: token))
                }
                intent.outcomes = [
                    ("replaced", .stored(item("replaced", "new\n", label: "label"))),
                    ("deleted", .deleted), ("stored", .stored(item("stored", "new", label: nil))),
                ]
                if let key { intent.outcomes.append((key, .stored(item(key, "new", label: nil)))) }
                let home = try access.home
                let writer = KeyringWriter(access: access, generation: generation)
                _ = try writer.create(
                    intent.attributes, in: home, label: intent.label,
                    secret: try access.session.encrypt(
                        Base64.encode(intent.encode()), contentType: "text/plain"),
                    replace: false)
                for (key, outcome) in intent.outcomes.prefix(made) {
                    switch outcome {
                    case .stored(let item):
                        try writer.put(item.metadata, item.secret, instead: current[key], in: home)
                    case .deleted: if let found = current[key] { try writer.delete(found) }
                    }
                }
                return generation
            }
        }
    }
}
