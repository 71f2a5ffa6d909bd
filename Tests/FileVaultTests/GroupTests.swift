import Synchronization
import SystemPackage
import Testing
import TokenVaultPlatform

@testable import TokenVault

/// Commits that are written together.
@Suite struct GroupTests {
    /// A vault whose syncs are counted, and what its commits were told.
    private final class Rig: Sendable {
        struct Disk {
            var syncs = 0
            var isFailing = false
        }

        typealias Outcome = Result<Generation?, TokenStorageError>

        let vault: BlockingFileVault
        let storage: FileTokenStorage.Blocking
        let session: VaultSession
        let disk: Monitor<Disk>
        private let outcomes = Monitor<[String: Outcome]>([:])

        init(in sandbox: Sandbox) throws {
            let disk = Monitor(Disk())
            self.disk = disk
            let directory = HookedDirectory(try PosixDirectory(sandbox.path)) { () throws(SystemFailure) in
                let isFailing = disk.withLock { disk in
                    disk.syncs += 1
                    defer { disk.isFailing = false }
                    return disk.isFailing
                }
                if isFailing { throw SystemFailure(.ioError, "fdatasync") }
            }
            vault = try BlockingFileVault.create(
                at: VaultLocation(
                    directory: directory, name: "group.vault", state: nil,
                    path: sandbox.path.appending("group.vault")),
                unlockMethod: keyFile, configuration: sandbox.configuration)
            storage = vault.storage(service: "group")
            session = try vault.session()
            try storage.store(token: "fake", for: "before")
            disk.withLock { $0.syncs = 0 }
        }

        var syncs: Int { disk.withLock { $0.syncs } }

        /// Stores an item under `key` on the thread that writes, which calls `making` when its turn has come, and `told`
        /// when it knows the outcome.
        func submit(
            _ key: String, making: @escaping @Sendable () throws(TokenStorageError) -> Void = {},
            told: @escaping @Sendable () -> Void = {}
        ) {
            let prepare = session.preparation(
                service: "group", changes: [.store(Secret(utf8: "fake"), for: TokenKey(key))],
                existed: CommitFacts())
            session.queue.submit(
                WriteRequest { view, add throws(TokenStorageError) in
                    try making()
                    try prepare(view, add)
                } finished: { [outcomes] outcome in
                    told()
                    outcomes.announce { $0[key] = outcome }
                })
        }

        /// What it was told, once it was.
        func outcome(_ key: String) -> Outcome { outcomes.wait { $0[key] } }

        /// Commits `first`, and `others` behind it, in a group of their own: as many are expected back.
        func commit(
            _ first: String, before others: [String], making: @escaping @Sendable () -> Void,
            told: @escaping @Sendable () -> Void = {}
        ) throws {
            let (hasBegun, mayGoOn) = (Monitor(false), Monitor(false))
            submit(
                first,
                making: {
                    hasBegun.announce { $0 = true }
                    mayGoOn.wait { $0 ? () : nil }
                })
            hasBegun.wait { $0 ? () : nil }
            for key in others { submit(key, making: making, told: told) }
            mayGoOn.announce { $0 = true }
            _ = try outcome(first).get()
        }
    }

    /// Else the one would wait for the sync of the others, and they for its.
    @Test func whoIsBackWhileAGroupIsMadeIsInIt() throws {
        let sandbox = try Sandbox()
        let rig = try Rig(in: sandbox)
        let isBack = Mutex(false)
        try rig.commit("first", before: ["second", "third"]) {
            let isFirst = isBack.withLock { isBack in
                defer { isBack = true }
                return !isBack
            }
            if isFirst { rig.submit("back") }
        }
        let generations = try ["first", "second", "third", "back"].map { key in
            try #require(try rig.outcome(key).get()).rawValue
        }
        #expect(generations == Array(generations[0]..<generations[0] + 4))
        #expect(rig.syncs == 2)
        #expect(try rig.storage.list().items.count == 5)
    }

    /// Who is refused is told at once, and may be back at once.
    @Test func whoIsRefusedAgainAndAgainKeepsNobodyWaiting() throws {
        let sandbox = try Sandbox()
        let rig = try Rig(in: sandbox)
        let refused = Mutex(0)
        @Sendable func refuse() {
            rig.submit(
                "refused-\(refused.withLock { $0 })",
                making: { () throws(TokenStorageError) in throw .file(.conflict) },
                told: {
                    let count = refused.withLock { refused in
                        refused += 1
                        return refused
                    }
                    if count < 100 { refuse() }
                })
        }
        let before = Mutex(0)
        try rig.commit("first", before: ["second"]) {
            refuse()
        } told: {
            let count = refused.withLock { $0 }
            before.withLock { $0 = count }
        }
        _ = try rig.outcome("second").get()
        #expect(before.withLock { $0 } == 1)
        guard case .failure(let error) = rig.outcome("refused-99") else {
            Issue.record("one was not refused")
            return
        }
        #expect(error.code == .conflict)
    }

    @Test func whoJoinedAGroupIsToldWhatBecameOfIt() throws {
        let sandbox = try Sandbox()
        let rig = try Rig(in: sandbox)
        try rig.commit("first", before: ["second"]) {
            rig.submit("back")
            rig.disk.withLock { $0.isFailing = true }
        }
        for key in ["second", "back"] {
            guard case .failure(let error) = rig.outcome(key) else {
                Issue.record("\(key) was not refused")
                continue
            }
            #expect(error.code == .ioFailure)
            #expect(try rig.storage.retrieve(for: TokenKey(key)) == nil)
        }
        try rig.storage.store(token: "fake-2", for: "back")
        #expect(try rig.storage.retrieve(for: "back") == "fake-2")
    }
}
