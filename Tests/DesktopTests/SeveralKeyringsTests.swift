import TestLanes
import Testing
import TokenVault

/// A desktop with two keyrings: the login keyring, which is the default one, and "Other".
@Suite(.tags(.desktop), .from(.usual)) struct SeveralKeyringsTests {
    private let desktop: PrivateDesktop
    private let other: String
    private let login: String
    private static let password = "fake horse"
    private static let ours = ["xdg:schema", "org.tokenvault.Token", "service", "app", "account", "key"]

    init() throws {
        desktop = try PrivateDesktop.withKeyring()
        other = try #require(try desktop.tell("create_collection", "Other", Self.password).first)
        login = "/org/freedesktop/secrets/collection/login"
    }

    /// A new connection whose new items go to the default keyring, or to the one with that label.
    private func storage(_ label: String? = nil) -> SecretServiceTokenStorage.Blocking {
        let collection = label.map { SecretServiceConfiguration.Collection.named($0) } ?? .default
        return SecretService(configuration: desktop.configuration(collection: collection))
            .storage(service: "app").blocking
    }

    /// How many items of the key "key" a keyring has.
    private func count(in keyring: String) throws -> Int {
        try desktop.tell("items_in", [keyring] + Self.ours).filter { !$0.isEmpty }.count
    }

    @Test func anItemInAnotherKeyringIsRead() throws {
        let generation = try storage("Other").store(token: "fake", for: "key", label: "label")
        let storage = storage()
        #expect(try storage.retrieve(for: "key") == "fake")
        #expect(try storage.item(for: "key")?.metadata.generation == generation)
        #expect(try storage.metadata(for: "key")?.label == "label")
        #expect(try storage.list().items.map(\.key) == ["key"])
        #expect(try storage.secretService.servicesBlocking().services == ["app"])
        #expect(try storage.retrieve(for: "absent") == nil)
    }

    @Test func anItemIsReplacedAndDeletedWhereItIs() throws {
        let first = try storage("Other").store(token: "first", for: "key")
        let storage = storage()
        try storage.compareAndStore(Secret(utf8: "second"), for: "key", expected: first)
        #expect(try count(in: other) == 1 && count(in: login) == 0)
        try storage.store(token: "third", for: "key", attributes: ["another": "attribute"])
        #expect(try count(in: other) == 1 && count(in: login) == 0)
        try storage.commit([.rename("key", to: "renamed"), .store(Secret(utf8: "new"), for: "new")])
        #expect(try self.storage("Other").retrieve(for: "renamed") == "third")
        #expect(try desktop.tell("items_in", other, "account", "renamed") != [""])
        #expect(try desktop.tell("items_in", login, "account", "new") != [""])
        try storage.commit([.rename("renamed", to: "key")])
        #expect(try count(in: other) == 1 && count(in: login) == 0)
        #expect(try storage.delete(for: "key"))
        #expect(try count(in: other) == 0)
        #expect(try self.storage("Other").retrieve(for: "key") == nil)
    }

    /// A keyring that was not unlocked since the daemon started tells less of its items than a keyring that was.
    @Test(arguments: ["lock", "restart"])
    func aMatchInALockedKeyringAloneIsLocked(_ how: String) throws {
        try storage("Other").store(token: "fake", for: "key")
        try storage().store(token: "fake", for: "here")
        let used = storage()
        #expect(try used.retrieve(for: "key") == "fake")
        try lockOther(how)
        for storage in [used, storage()] {
            #expect(code { try storage.secret(for: "key") } == .locked)
            #expect(code { try storage.item(for: "key") } == .locked)
            #expect(code { try storage.metadata(for: "key") } == .locked)
            #expect(code { try storage.delete(for: "key") } == .locked)
            #expect(code { try storage.store(token: "new", for: "key") } == .locked)
            #expect(code { try storage.compareAndStore(Secret([1]), for: "key", expected: nil) } == .locked)
            #expect(code { try storage.commit([.rename("here", to: "key")]) } == .locked)
            #expect(code { try storage.deleteAll() } == .locked)
            #expect(try storage.retrieve(for: "absent") == nil)
            #expect(try storage.retrieve(for: "here") == "fake")
            try storage.store(token: "fake", for: "here")
            let listing = try storage.list()
            #expect(listing.items.map(\.key) == ["here"])
            #expect(listing.hidden == 1 && listing.hiddenReasons == [.locked: 1])
            let services = try storage.secretService.servicesBlocking()
            #expect(services.services == ["app"] && services.hidden == 1)
        }
        try desktop.tell("unlock", other, Self.password)
        for storage in [used, storage()] {
            #expect(try storage.retrieve(for: "key") == "fake")
            #expect(try storage.list().hidden == 0)
        }
    }

    private func lockOther(_ how: String) throws {
        if how == "lock" {
            try desktop.tell("lock", other)
        } else {
            try desktop.tell("restart_keyring")
        }
    }

    /// What is in the locked keyring of another program is its own matter.
    @Test(arguments: ["lock", "restart"])
    func aLockedItemOfAnotherProgramHidesNothing(_ how: String) throws {
        let theirs = ["xdg:schema", "com.example.Theirs", "service", "app", "account", "key"]
        try desktop.tell("create_in", [other, "theirs", "fake"] + theirs)
        try lockOther(how)
        let storage = storage()
        #expect(try storage.retrieve(for: "key") == nil)
        #expect(try storage.list() == TokenListing(items: []))
        try storage.store(token: "ours", for: "key")
        #expect(try storage.retrieve(for: "key") == "ours")
        #expect(try storage.delete(for: "key"))
    }

    /// D-Bus has no text with U+0000: a search for such a name would be one for what is before it.
    @Test func aNameWithANULIsNoOtherName() throws {
        let theirs = ["xdg:schema", "com.example.Theirs", "service", "app", "account", "a"]
        try desktop.tell("create_in", [other, "theirs", "fake"] + theirs)
        try desktop.tell("lock", other)
        var configuration = desktop.configuration()
        configuration.readsOtherPrograms = true
        let storage = SecretService(configuration: configuration).storage(service: "app").blocking
        #expect(try storage.retrieve(for: "a\0b") == nil)
        #expect(code { try storage.retrieve(for: "a") } == .locked)
    }

    @Test func ofDuplicatesTheChosenKeyringsCountsAndThenTheNewest() throws {
        try desktop.tell("create_in", [login, "in login", "in login"] + Self.ours)
        try desktop.tell("create_in", [other, "in other", "in other"] + Self.ours)
        let third = try #require(try desktop.tell("create_collection", "Third", Self.password).first)
        #expect(try storage().retrieve(for: "key") == "in login")
        #expect(try storage("Other").retrieve(for: "key") == "in other")
        #expect(try storage().list().items.map(\.label) == ["in login"])
        #expect(try storage("Other").list().items.map(\.label) == ["in other"])
        let generation = try #require(try storage().metadata(for: "key")?.generation)
        try desktop.tell(
            "create_in",
            [third, "newest (generation \(generation.rawValue + 9_000_000))", "newest"] + Self.ours)
        try desktop.tell("delete", try #require(try desktop.tell("items_in", [login] + Self.ours).first))
        #expect(try storage().retrieve(for: "key") == "newest")
        // A store leaves one item, in the keyring of the item that counted.
        try storage().store(token: "stored", for: "key")
        #expect(try count(in: third) == 1 && count(in: other) == 0 && count(in: login) == 0)
    }

    /// A store replaces every duplicate, also in a process that remembers the item that counts.
    @Test func aStoreByWhoHasReadLeavesNoDuplicate() throws {
        try desktop.tell("create_in", [other, "in other", "in other"] + Self.ours)
        try desktop.tell("create_in", [login, "in login", "in login"] + Self.ours)
        let storage = storage()
        // From now on this process knows that the service reports changes before it answers.
        try storage.store(token: "fake", for: "another")
        for _ in 0..<2 { #expect(try storage.retrieve(for: "key") == "in login") }
        try storage.store(token: "stored", for: "key")
        #expect(try count(in: login) == 1 && count(in: other) == 0)
        #expect(try self.storage("Other").retrieve(for: "key") == "stored")
    }

    /// What a commit in a locked keyring holds is hidden, and no other program's.
    @Test(arguments: ["lock", "restart"])
    func aCommitInALockedKeyringIsCountedAsHidden(_ how: String) throws {
        try storage().store(token: "fake", for: "here")
        try desktop.tell(
            "create_in", other, "commit", "AAAA", "xdg:schema", "org.tokenvault.Commit", "tokenvault:commit",
            "1", "tokenvault:service", "unseen", "tokenvault:generation", "1")
        try lockOther(how)
        for readsOthers in [false, true] {
            var configuration = desktop.configuration()
            configuration.readsOtherPrograms = readsOthers
            let services = try SecretService(configuration: configuration).servicesBlocking()
            #expect(services.services == ["app"] && services.hidden == 1)
            #expect(services.hiddenReasons == [.locked: 1] && services.passedOver == 0)
        }
    }

    @Test func aReaderThatRemembersAnItemSeesABetterOne() throws {
        try storage("Other").store(token: "in other", for: "key")
        let reader = storage()
        for _ in 0..<2 { #expect(try reader.retrieve(for: "key") == "in other") }
        try desktop.tell("create_in", [login, "in login", "in login"] + Self.ours)
        for _ in 0..<2 { #expect(try reader.retrieve(for: "key") == "in login") }
    }

    @Test func aDeletionLeavesNoSecondCopy() throws {
        try desktop.tell("create_in", [login, "in login", "in login"] + Self.ours)
        try desktop.tell("create_in", [other, "in other", "in other"] + Self.ours)
        let storage = storage()
        try desktop.tell("lock", other)
        // The item of the default keyring is read; no other operation is possible.
        #expect(try storage.retrieve(for: "key") == "in login")
        #expect(code { try storage.delete(for: "key") } == .locked)
        #expect(code { try storage.store(token: "new", for: "key") } == .locked)
        #expect(try storage.retrieve(for: "key") == "in login")
        try desktop.tell("unlock", other, Self.password)
        #expect(try storage.delete(for: "key"))
        #expect(try count(in: login) == 0 && count(in: other) == 0)
        #expect(try storage.retrieve(for: "key") == nil)
    }

    /// The keyring that is chosen counts: what another one has may be old.
    @Test func aLockedChosenKeyringWithAMatchIsLocked() throws {
        try desktop.tell("create_in", [login, "in login", "in login"] + Self.ours)
        let chosen = storage("Other")
        #expect(try chosen.retrieve(for: "key") == "in login")
        try desktop.tell("create_in", [other, "in other", "in other"] + Self.ours)
        #expect(try chosen.retrieve(for: "key") == "in other")
        try desktop.tell("lock", other)
        #expect(code { try chosen.retrieve(for: "key") } == .locked)
        try desktop.tell("unlock", other, Self.password)
        #expect(try chosen.retrieve(for: "key") == "in other")
    }

    @Test func whatIsInAnUnlockedKeyringIsReadWhileTheDefaultOneIsLocked() throws {
        try storage("Other").store(token: "fake", for: "key")
        let storage = storage()
        try desktop.tell("lock", login)
        #expect(try storage.retrieve(for: "key") == "fake")
        #expect(try storage.metadata(for: "key") != nil)
        try storage.store(token: "new", for: "key")
        #expect(try storage.retrieve(for: "key") == "new")
        #expect(code { try storage.retrieve(for: "absent") } == .locked)
        #expect(code { try storage.store(token: "fake", for: "absent") } == .locked)
        #expect(try storage.delete(for: "key"))
    }

    @Test func withoutTheChosenKeyringItemsAreReadAndNewOnesAreNot() throws {
        try storage("Other").store(token: "fake", for: "key")
        let storage = storage("No such keyring")
        #expect(try storage.retrieve(for: "key") == "fake")
        #expect(try storage.list().items.map(\.key) == ["key"])
        try storage.store(token: "new", for: "key")
        #expect(try count(in: other) == 1)
        let error = #expect(throws: TokenStorageError.self) { try storage.store(token: "fake", for: "new") }
        #expect(error?.code == .unavailable && error?.underlying?.contains("of that name") == true)
        #expect(code { try storage.retrieve(for: "new") } == .unavailable)
    }

    @Test func aKeyringIsChosenByItsAliasToo() throws {
        try desktop.tell("set_default", other)
        try storage("login").store(token: "fake", for: "key")
        #expect(try count(in: login) == 1 && count(in: other) == 0)
    }

    @Test func aCommitOfSeveralKeyringsIsWhole() throws {
        try storage("Other").store(token: "old", for: "key")
        try storage().store(token: "old", for: "here")
        let reader = storage()
        #expect(try reader.list().items.count == 2)
        let commit = try storage().commit([
            .store(Secret(utf8: "new"), for: "key"), .delete("here"),
            .store(Secret(utf8: "new"), for: "added"),
        ])
        #expect(try reader.list().items.map(\.generation) == [commit.generation, commit.generation])
        #expect(try count(in: other) == 1)
        #expect(try desktop.tell("items_in", login, "account", "added") != [""])
        try desktop.tell("lock", other)
        // The commit changed nothing.
        #expect(
            code {
                try reader.commit([.delete("added"), .store(Secret(utf8: "newer"), for: "key")])
            } == .locked)
        #expect(try reader.retrieve(for: "added") == "new")
        #expect(code { try reader.deleteAll() } == .locked)
    }

    /// One keyring or several, a reader that knows where its item is asks for nothing but the secret.
    @Test func aKnownItemIsReadWithOneCall() throws {
        try storage("Other").store(token: "fake", for: "key")
        let storage = storage()
        try storage.store(token: "fake", for: "here")
        for _ in 0..<2 { #expect(try storage.retrieve(for: "key") == "fake") }
        try desktop.tell("start_monitor")
        for _ in 0..<5 { #expect(try storage.retrieve(for: "key") == "fake") }
        #expect(
            try desktop.tell("stop_monitor", "SearchItems", "GetSecret", "member=Get") == ["0", "5", "5"])
    }
}
