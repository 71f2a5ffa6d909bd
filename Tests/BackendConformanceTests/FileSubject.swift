import Synchronization
import SystemPackage
import TokenVault
import TokenVaultTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A file vault in a directory of its own, unlocked with a key file. A passphrase unlocks it only where the
/// passcode matters: deriving that key takes a tenth of a second each time.
final class FileSubject: ConformanceSubject {
    private static let keyFile = UnlockMethod.keyFile(
        Secret(utf8: "not a real key: 0123456789abcdef0123456789abcdef"))
    private static let passphrase = UnlockMethod.passphrase(Secret(utf8: "not a real passphrase"))

    private let directory: Directory
    private let hasPassphrase: Bool
    private let vault: Mutex<BlockingFileVault>
    private let isOriginal = Mutex(true)

    let capabilities: Set<ConformanceCapability>

    /// A fresh vault.
    convenience init(passphrase hasPassphrase: Bool) throws {
        let directory = Directory()
        let vault = try BlockingFileVault.create(
            at: directory.vault, unlockMethod: hasPassphrase ? Self.passphrase : Self.keyFile,
            configuration: directory.configuration(isOriginal: true))
        if hasPassphrase { _ = try vault.addSlot(Self.keyFile, scope: .all) }
        self.init(directory, vault, hasPassphrase)
    }

    private init(_ directory: Directory, _ vault: BlockingFileVault, _ hasPassphrase: Bool) {
        self.directory = directory
        self.hasPassphrase = hasPassphrase
        self.vault = Mutex(vault)
        capabilities =
            hasPassphrase
            ? Set(ConformanceCapability.allCases)
            : Set(ConformanceCapability.allCases).subtracting([.passcode])
    }

    private var opened: BlockingFileVault { vault.withLock { $0 } }

    func storage(service: String) -> any TokenStorage { FileTokenStorage(opened, service: service) }
    func blockingStorage(service: String) -> any BlockingTokenStorage { opened.storage(service: service) }

    func anotherHandle() throws -> any ConformanceSubject {
        FileSubject(directory, try open(), hasPassphrase)
    }

    func setLockState(_ lockState: LockState) throws {
        switch lockState {
        case .unlocked: try opened.unlock(with: method)
        case .afterFirstUnlock:
            try opened.unlock(with: method)
            opened.lock()
        case .locked: try reopen(unlocking: false)
        }
    }

    func setDevice(isOriginal: Bool) throws {
        self.isOriginal.withLock { $0 = isOriginal }
        try reopen(unlocking: true)
    }

    func setPasscode(isSet: Bool) throws {
        if isSet {
            _ = try opened.addSlot(Self.passphrase)
            try reopen(unlocking: true)
        } else if let slot = try opened.slots().first(where: { $0.kind == .passphrase }) {
            try opened.removeSlot(slot.id)
        }
    }

    func close() { opened.close() }

    private var method: UnlockMethod { hasPassphrase ? Self.passphrase : Self.keyFile }

    private func open() throws -> BlockingFileVault {
        let configuration = directory.configuration(isOriginal: isOriginal.withLock { $0 })
        let vault = try BlockingFileVault.open(at: directory.vault, configuration: configuration)
        try vault.unlock(with: method)
        return vault
    }

    private func reopen(unlocking: Bool) throws {
        opened.close()
        let configuration = directory.configuration(isOriginal: isOriginal.withLock { $0 })
        let fresh = try BlockingFileVault.open(at: directory.vault, configuration: configuration)
        if unlocking { try fresh.unlock(with: method) }
        vault.withLock { $0 = fresh }
    }

    /// Where the vault and what belongs to each device are; removed with the last handle.
    private final class Directory: Sendable {
        private let path = "/tmp/tokenvault-conformance-\(UInt64.random(in: .min ... .max))"

        var vault: FilePath { FilePath(path + "/vaults/test.vault") }

        func configuration(isOriginal: Bool) -> FileVaultConfiguration {
            FileVaultConfiguration(
                stateDirectory: FilePath(path + (isOriginal ? "/state" : "/another-device")),
                lockTimeout: .seconds(60), keyDerivationCost: .minimum)
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }
    }
}
