import Synchronization
import SystemPackage
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// A vault whose commits are made to wait for each other, whose syncs are counted and made to fail.
final class GroupRig: Sendable {
    private struct Disk {
        var syncs = 0
        var failures = 0
        var meanwhile: (@Sendable () -> Void)?

        mutating func synchronize() throws(SystemFailure) {
            syncs += 1
            meanwhile?()
            meanwhile = nil
            guard failures > 0 else { return }
            failures -= 1
            throw SystemFailure(.ioError, "fdatasync")
        }
    }

    typealias Outcome = Result<Generation?, TokenStorageError>

    let storage: FileTokenStorage.Blocking
    let session: VaultSession
    private let disk: Monitor<Disk>
    private let outcomes = Monitor<[String: Outcome]>([:])
    private let mayGoOn = Monitor(false)

    convenience init(in sandbox: Sandbox) throws {
        let disk = Monitor(Disk())
        let directory = HookedDirectory(try PosixDirectory(sandbox.path)) { () throws(SystemFailure) in
            try disk.withLock { (disk) throws(SystemFailure) in try disk.synchronize() }
        }
        let path = sandbox.path.appending("group.vault")
        try self.init(
            try BlockingFileVault.create(
                at: VaultLocation(
                    directory: directory, name: "group.vault", state: nil, path: path, absolutePath: path),
                unlockMethod: keyFile, configuration: sandbox.configuration), disk)
    }

    /// Of a vault whose syncs are not looked at.
    convenience init(_ vault: BlockingFileVault) throws { try self.init(vault, Monitor(Disk())) }

    private init(_ vault: BlockingFileVault, _ disk: Monitor<Disk>) throws {
        self.disk = disk
        storage = vault.storage(service: "group")
        session = try vault.session()
        try storage.store(token: "fake", for: "before")
        resetSyncs()
    }

    func resetSyncs() { disk.withLock { $0.syncs = 0 } }

    var syncs: Int { disk.withLock { $0.syncs } }

    /// Has the next syncs fail.
    func fail(_ syncs: Int) { disk.withLock { $0.failures = syncs } }

    func onNextSync(_ body: @escaping @Sendable () -> Void) { disk.withLock { $0.meanwhile = body } }

    /// Commits `changes`, or stores an item under `name`, on the thread that writes. That thread calls
    /// `making` when the request's turn has come, and `told` when the outcome is known.
    func submit(
        _ name: String, _ changes: [TokenChange]? = nil,
        making: @escaping @Sendable () throws(TokenStorageError) -> Void = {},
        told: @escaping @Sendable () -> Void = {}
    ) {
        let prepare = session.preparation(
            service: "group", changes: changes ?? [.store(Secret(utf8: "fake"), for: TokenKey(name))],
            existed: CommitFacts())
        session.queue.submit(
            WriteRequest { view, add throws(TokenStorageError) in
                try making()
                try prepare(view, add)
            } finished: { [outcomes] outcome in
                told()
                outcomes.announce { $0[name] = outcome }
            })
    }

    /// Stores an item in a group of its own, and holds that group until ``goOn()``. The requests that are
    /// submitted meanwhile are the next group. The queue then expects as many writers back as that group has,
    /// and one more.
    func lead(_ name: String) throws {
        let hasBegun = Monitor(false)
        submit(
            name,
            making: { [mayGoOn] in
                hasBegun.announce { $0 = true }
                mayGoOn.wait { $0 ? () : nil }
            })
        hasBegun.wait { $0 ? () : nil }
    }

    func goOn() { mayGoOn.announce { $0 = true } }

    /// What it was told, once it was.
    func outcome(_ name: String) -> Outcome { outcomes.wait { $0[name] } }

    /// Why it was refused, once it was told; `nil` when it was not.
    func code(_ name: String) -> TokenStorageError.Code? {
        if case .failure(let error) = outcome(name) { error.code } else { nil }
    }
}
