import TestLanes
import Testing
import TokenVault
import VaultAgent

/// What a program stores through a locked agent does not choose the policy of what comes later.
@Suite(.tags(.programs), .from(.usual)) struct PolicyOriginTests {
    @Test func aLockedAgentChoosesNoPolicyForTheOwner() throws {
        let home = try TestHome()
        let agent = try LocalAgent(in: home)
        let vault = try agent.unlockedVault()
        let storage = vault.storage(service: "s")
        try storage.store(token: "owner's", for: "chosen", policy: .afterFirstUnlock)
        #expect(try vault.lock())
        try storage.store(token: "bait", for: "important", policy: .afterFirstUnlock)
        try storage.store(token: "newer", for: "chosen")
        #expect(try storage.metadata(for: "important")?.isPolicyFromLimitedSession == true)
        #expect(try storage.metadata(for: "chosen")?.isPolicyFromLimitedSession == false)
        _ = try agent.unlockedVault()
        #expect(try storage.metadata(for: "important")?.isPolicyFromLimitedSession == true)
        #expect(
            try storage.list().items.map { "\($0.key) \($0.isPolicyFromLimitedSession)" } == [
                "chosen false", "important true",
            ])
        let commit = try storage.commit([
            .store(Secret(utf8: "secret"), for: "important"), .store(Secret(utf8: "newest"), for: "chosen"),
        ])
        #expect(commit.policyResets.map(\.key) == ["important"])
        #expect(commit.policyResets.first?.from == .afterFirstUnlock)
        let now = try #require(try storage.metadata(for: "important"))
        #expect(now.policy == commit.policyResets.first?.to && !now.policy.isReadableAfterFirstUnlock)
        #expect(!now.isPolicyFromLimitedSession)
        #expect(try storage.metadata(for: "chosen")?.policy == .afterFirstUnlock)
        #expect(try vault.lock())
        #expect(throws: TokenStorageError.self) { try storage.retrieve(for: "important") }
    }
}
