import Testing

@testable import TokenVault

/// What signals that come between a question and its answer leave of what is remembered.
@Suite struct KeyringMemoryTests {
    private let memory = KeyringMemory()
    private let path = "/org/freedesktop/secrets/collection/Other/1"

    /// A keyring that is unlocked tells of each of its items.
    @Test(arguments: ["ItemCreated", "ItemChanged"])
    func aCommitThatWasToldOfDuringItsSearchIsUnderWay(_ member: String) {
        memory.hasSearched([], locked: [path], since: memory.moment)
        #expect(memory.unseen.hasLockedIntents)
        let moment = memory.moment
        memory.takeKeyringSignal()
        memory.take(member, path)
        memory.hasSearched([path], locked: [], since: moment)
        #expect(memory.unseen.intents == [path])
    }

    @Test(arguments: ["ItemCreated", "ItemChanged"])
    func aCommitThatWasToldOfWhileItWasLookedAtIsUnderWay(_ member: String) {
        memory.take("ItemCreated", path)
        let moment = memory.moment
        #expect(memory.unseen.unknown == [path])
        memory.take(member, path)
        memory.hasSeen(path, schema: CommitIntent.schema, nil, since: moment)
        #expect(memory.unseen.intents == [path])
    }

    @Test func oneThatIsGoneIsForgotten() {
        memory.take("ItemCreated", path)
        memory.hasSeen(path, schema: CommitIntent.schema, nil, since: memory.moment)
        memory.take("ItemDeleted", path)
        #expect(memory.unseen.intents.isEmpty && memory.unseen.unknown.isEmpty)
    }
}
