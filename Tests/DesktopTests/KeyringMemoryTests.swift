import TestLanes
import Testing
import TokenVault

@testable import TokenVaultDesktop

/// What signals that come between a question and its answer leave of what is remembered.
@Suite(.tags(.desktop), .from(.usual)) struct KeyringMemoryTests {
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

    /// A listing that was made while it ended may have a part of it.
    @Test(arguments: [false, true])
    func oneThatEndsCountsAsACommit(isLookedAt: Bool) {
        memory.watchCommits(in: "app")
        let before = memory.commits(in: "app")
        memory.take("ItemCreated", path)
        if isLookedAt {
            memory.hasSeen(path, schema: CommitIntent.schema, nil, since: memory.moment)
        }
        memory.take("ItemDeleted", path)
        #expect(memory.commits(in: "app") > before)
    }

    /// What was searched before all was forgotten says nothing of what is there since.
    @Test func whatWasSearchedBeforeAllWasForgottenIsNotRemembered() {
        for _ in 0..<3 { memory.takeKeyringSignal() }
        let moment = memory.moment
        memory.forgetAll()
        let name = KeyringMemory.Name("app", "key")
        memory.remember(item("key"), name, since: moment)
        #expect(memory.recall(name) == nil)
        memory.remember(item("key"), name, since: memory.moment)
        #expect(memory.recall(name)?.item.path == path)
    }

    /// Another program gave the item another key.
    @Test func anItemIsRememberedUnderItsLastKeyAlone() {
        let (former, name) = (KeyringMemory.Name("app", "key"), KeyringMemory.Name("app", "moved"))
        memory.remember(item("key"), former, since: memory.moment)
        memory.remember(item("moved"), name, since: memory.moment)
        #expect(memory.recall(former) == nil && memory.recall(name) != nil)
    }

    private func item(_ key: TokenKey) -> KeyringItem {
        let metadata = TokenMetadata(
            key: key, service: "app", policy: .whenUnlocked, label: nil, created: Microseconds.date(1),
            modified: Microseconds.date(1), generation: Generation(rawValue: 1))
        return KeyringItem(path: path, metadata: metadata, encoding: .text)
    }

    @Test func oneThatIsGoneIsForgotten() {
        memory.take("ItemCreated", path)
        memory.hasSeen(path, schema: CommitIntent.schema, nil, since: memory.moment)
        memory.take("ItemDeleted", path)
        #expect(memory.unseen.intents.isEmpty && memory.unseen.unknown.isEmpty)
    }
}
