import SystemPackage
import TokenVault

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Which backends a migration is between.
enum MigrationRoute: CaseIterable, Sendable {
    case memoryToFile, fileToMemory, fileToFile, memoryToMemory
}

/// A source with items and an empty destination.
final class MigrationEnds {
    private let sandbox: Sandbox
    let source: any TokenKeychain
    let destination: any TokenKeychain
    static let service = "com.example.app"

    init(_ route: MigrationRoute) throws {
        sandbox = try Sandbox()
        let isFile: (Bool, Bool) =
            switch route {
            case .memoryToFile: (false, true)
            case .fileToMemory: (true, false)
            case .fileToFile: (true, true)
            case .memoryToMemory: (false, false)
            }
        source = isFile.0 ? try Self.vault("from", sandbox) : InMemoryVault()
        destination = isFile.1 ? try Self.vault("to", sandbox) : InMemoryVault()
    }

    static func vault(_ name: String, _ sandbox: Sandbox) throws -> FileVault {
        FileVault(
            try BlockingFileVault.create(
                at: sandbox.path.appending("\(name).vault"), unlockMethod: keyFile,
                configuration: sandbox.configuration))
    }

    func from(_ service: String = MigrationEnds.service) -> any TokenStorage {
        source.storage(service: service)
    }
    func to(_ service: String = MigrationEnds.service) -> any TokenStorage {
        destination.storage(service: service)
    }
}

/// Items that differ in everything an item has.
let movedItems: [(key: TokenKey, secret: Secret, details: TokenDetails)] = [
    ("access_token", Secret(utf8: "fake-access"), TokenDetails()),
    (
        "refresh_token", Secret(utf8: "fake-refresh\n"),
        TokenDetails(
            policy: .afterFirstUnlock, label: "A label",
            attributes: ["host": "example.com", "é": "e\u{301}"],
            expiry: .at(Date(timeIntervalSince1970: 1_800_000_000.123456)))
    ),
    ("binary", Secret((0...255).map { UInt8($0) }), TokenDetails(policy: .whenUnlocked)),
    ("empty", Secret([UInt8]()), TokenDetails(policy: .afterFirstUnlockThisDeviceOnly, label: "")),
    ("large", Secret([UInt8](repeating: 7, count: Secret.maximumLength)), TokenDetails()),
    ("\u{e9}", Secret(utf8: "fake-composed"), TokenDetails()),
    ("e\u{301}", Secret(utf8: "fake-decomposed"), TokenDetails()),
]

extension TokenStorage {
    /// Stores the items above.
    func fill() async throws {
        for item in movedItems { try await store(item.secret, for: item.key, details: item.details) }
    }

    /// Every item with its secret.
    func everything() async throws -> [TokenItem] {
        var items: [TokenItem] = []
        for metadata in try await list().items {
            if let item = try await item(for: metadata.key) { items.append(item) }
        }
        return items
    }
}

/// Whether both are the same but for what a copy has of its own.
func areCopies(_ left: [TokenItem], _ right: [TokenItem]) -> Bool {
    left.count == right.count
        && zip(left, right).allSatisfy { left, right in
            let (old, new) = (left.metadata, right.metadata)
            let expiries = [old.expires, new.expires].compactMap { $0?.timeIntervalSince1970 }
            return left.secret == right.secret && old.key == new.key && old.policy == new.policy
                && (old.label ?? "").utf8.elementsEqual((new.label ?? "").utf8)
                && old.attributes == new.attributes && expiries.count != 1
                && (expiries.isEmpty || abs(expiries[0] - expiries[1]) < 0.0011)
        }
}
