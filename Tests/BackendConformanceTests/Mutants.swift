import Synchronization
import TokenVault
import TokenVaultTesting

/// A backend that breaks one sentence of the contract, and the check that must say so.
struct Mutant: Sendable, CustomStringConvertible {
    let description: String
    let check: String
    let make: @Sendable () -> FaultySubject

    init(_ description: String, caughtBy check: String, _ make: @escaping @Sendable () -> FaultySubject) {
        self.description = description
        self.check = check
        self.make = make
    }

    init(
        _ description: String, caughtBy check: String,
        fault: @escaping @Sendable (inout FaultyStorage) -> Void
    ) {
        self.init(description, caughtBy: check) { FaultySubject(fault: fault) }
    }
}

let mutants: [Mutant] = [
    Mutant("cuts secrets at 8,192 bytes", caughtBy: "secrets of every size are read back whole") {
        $0.secret = { Secret($0.unprotectedBytes().prefix(8_192)) }
    },
    Mutant("drops a trailing newline", caughtBy: "text is read back byte for byte") {
        $0.secret = { secret in
            let bytes = secret.unprotectedBytes()
            return Secret(bytes.last == 0x0a ? bytes.dropLast() : bytes[...])
        }
    },
    Mutant("ends secrets at a NUL", caughtBy: "every byte value is read back") {
        $0.secret = { Secret($0.unprotectedBytes().prefix { $0 != 0 }) }
    },
    Mutant("takes an empty secret for none", caughtBy: "an empty secret is a secret") {
        $0.secret = { $0.isEmpty ? nil : $0 }
    },
    Mutant("takes half of the largest secret", caughtBy: "a secret of 1 MiB is read back whole") {
        $0.commit = { (base, changes) async throws(TokenStorageError) in
            for case .store(let secret) in changes.map(\.action) where secret.count > 1 << 19 {
                throw TokenStorageError(.tooLarge, operation: "store", backend: "faulty")
            }
            return try await base.commit(changes)
        }
    },
    Mutant(
        "merges keys that Swift calls equal",
        caughtBy: "keys that Swift calls equal but differ in their bytes are two keys"
    ) {
        let seen = Table<String, TokenKey>()
        return FaultySubject.with { $0.key = { key in seen.value(of: key.name, or: key) } }
    },
    Mutant("folds case in keys", caughtBy: "keys that differ in case or spaces are two keys") {
        $0.key = { TokenKey($0.name.lowercased()) }
    },
    Mutant("strips newlines from keys", caughtBy: "a newline in a key is kept") {
        $0.key = { key in TokenKey(key.name.filter { !$0.isNewline }) }
    },
    Mutant("counts characters of keys, not bytes", caughtBy: "a key of more than 1,024 bytes is invalidKey") {
        $0.key = { key in key.name.count <= 1_024 ? TokenKey(String(key.name.prefix(256))) : key }
    },
    Mutant("forgets the service", caughtBy: "services do not see each other's items") {
        FaultySubject(renamesService: { _ in "one for all" })
    },
    Mutant("forgets where the service ends", caughtBy: "the boundary between service and key is kept") {
        let vault = InMemoryVault()
        return FaultySubject.with {
            let service = $0.service
            $0.base = vault.storage(service: "all")
            $0.key = { TokenKey(service + $0.name) }
        }
    },
    Mutant("loses attributes", caughtBy: "metadata, item and list report the same details") {
        $0.metadata = { metadata in
            var metadata = metadata
            metadata.attributes = [:]
            return metadata
        }
    },
    Mutant(
        "replaces by deleting first",
        caughtBy: "a replace keeps label, attributes, policy, expiry and creation date"
    ) {
        $0.commit = { (base, changes) async throws(TokenStorageError) in
            for change in changes where change.isStore { try await base.delete(for: change.key) }
            return try await base.commit(changes)
        }
    },
    Mutant("hides expired items", caughtBy: "an expired item is reported as expired and can still be read") {
        $0.metadata = { $0.isExpired(at: $0.modified) ? nil : $0 }
    },
    Mutant("weakens a policy in silence", caughtBy: "every supported policy is kept and reported") {
        $0.commit = { (base, changes) async throws(TokenStorageError) in
            try await base.commit(
                changes.map { change in
                    var change = change
                    if change.details.policy != nil { change.details.policy = .whenUnlocked }
                    return change
                })
        }
    },
    Mutant(
        "stores under a policy that it does not support",
        caughtBy: "a policy that is not supported is refused, never weakened"
    ) {
        $0.policies = [.whenUnlockedThisDeviceOnly]
    },
    Mutant("uses one generation for all", caughtBy: "generations grow with every commit and stay below 2^53")
    {
        $0.commit = { (base, changes) async throws(TokenStorageError) in
            var commit = try await base.commit(changes)
            commit.generation = commit.generation.map { _ in 1 }
            return commit
        }
    },
    Mutant(
        "counts generations per key and life",
        caughtBy: "an item stored again does not have its old generation"
    ) {
        $0.commit = { (base, changes) async throws(TokenStorageError) in
            // Imitates a counter that restarts with each life of a key: the old number is valid again.
            try await base.commit(
                changes.map { change in
                    var change = change
                    if case .generation = change.expectation { change.expectation = .any }
                    return change
                })
        }
    },
    Mutant("ignores what a store expects", caughtBy: "store-if-absent stores once") {
        $0.commit = { (base, changes) async throws(TokenStorageError) in
            try await base.commit(changes.map(\.expectingAnything))
        }
    },
    Mutant("compares first and stores later", caughtBy: "concurrent compare-and-store loses no update") {
        $0.commit = { (base, changes) async throws(TokenStorageError) in
            for change in changes {
                guard case .generation(let expected) = change.expectation else { continue }
                let found = try await base.metadata(for: change.key)?.generation
                guard found == expected else {
                    throw TokenStorageError(
                        .conflict, operation: "store", backend: "faulty", generation: found)
                }
            }
            await Task.yield()
            return try await base.commit(changes.map(\.expectingAnything))
        }
    },
    Mutant(
        "makes the changes of a commit one by one",
        caughtBy: "a commit is all or nothing, at any position of the refused change"
    ) {
        $0.commit = { (base, changes) async throws(TokenStorageError) in try await oneByOne(base, changes) }
    },
    Mutant("shows commits while they are made", caughtBy: "readers never see half of a commit") {
        $0.commit = { (base, changes) async throws(TokenStorageError) in
            try await oneByOne(base, changes, yielding: true)
        }
    },
    Mutant("takes a key twice in a commit", caughtBy: "no key may occur twice in a commit") {
        $0.commit = { (base, changes) async throws(TokenStorageError) in try await oneByOne(base, changes) }
    },
    Mutant(
        "renames over what is there", caughtBy: "a rename to a taken key is alreadyExists and changes neither"
    ) {
        $0.commit = { (base, changes) async throws(TokenStorageError) in
            for case .rename(let target) in changes.map(\.action) { try await base.delete(for: target) }
            return try await base.commit(changes)
        }
    },
    Mutant(
        "says that every delete deleted",
        caughtBy: "delete is idempotent and reports whether the item existed"
    ) {
        $0.commit = { (base, changes) async throws(TokenStorageError) in
            var commit = try await base.commit(changes)
            commit.existed = commit.existed.map { _ in true }
            return commit
        }
    },
    Mutant(
        "does half of a cancelled commit",
        caughtBy: "a write in a cancelled task happens completely or is cancelled"
    ) {
        $0.commit = { (base, changes) async throws(TokenStorageError) in
            guard Task.isCancelled, let first = changes.first else { return try await base.commit(changes) }
            let result = await Task { try? await base.commit([first]) }.value
            throw TokenStorageError(
                .cancelled, operation: "commit", backend: "faulty", generation: result?.generation)
        }
    },
    Mutant("says absent when cancelled", caughtBy: "a read in a cancelled task never says absent") {
        $0.secret = { Task.isCancelled ? nil : $0 }
    },
    Mutant("lists in no order", caughtBy: "a list is in the order of the keys' bytes") {
        $0.listing = { TokenListing(items: $0.items.reversed(), hidden: $0.hidden) }
    },
    Mutant("sorts as people do", caughtBy: "a list is in the order of the keys' bytes") {
        $0.listing = { listing in
            TokenListing(
                items: listing.items.sorted { $0.key.name.lowercased() < $1.key.name.lowercased() },
                hidden: listing.hidden)
        }
    },
    Mutant("looks for prefixes by characters", caughtBy: "a prefix selects keys by bytes") {
        $0.list = { (base, query) async throws(TokenStorageError) in
            var listing = try await base.list(TokenQuery(attributes: query.attributes))
            listing.items = listing.items.filter { $0.key.name.hasPrefix(query.prefix) }
            return listing
        }
    },
    Mutant(
        "finds items with any of the attributes",
        caughtBy: "attributes select items that have all of them exactly"
    ) {
        $0.list = { (base, query) async throws(TokenStorageError) in
            var listing = try await base.list(TokenQuery(prefix: query.prefix))
            listing.items = listing.items.filter { item in
                query.attributes.isEmpty || query.attributes.contains { item.attributes[$0.name] == $0.value }
            }
            return listing
        }
    },
    Mutant(
        "tells no changes",
        caughtBy: "stores, updates, renames and deletes are reported with their generations"
    ) {
        let silent = ChangeHub()
        $0.changeHub = silent
        $0.commit = { (base, changes) async throws(TokenStorageError) in
            withExtendedLifetime(silent) {}
            return try await base.commit(changes)
        }
    },
    Mutant(
        "tells deletes as stores",
        caughtBy: "stores, updates, renames and deletes are reported with their generations"
    ) {
        let hub = ChangeHub()
        return FaultySubject.with { $0.changeHub = hub }
    },
    Mutant(
        "tells an old generation last",
        caughtBy: "a slow reader sees the latest generation of every key, never backwards"
    ) {
        let hub = ChangeHub()
        let first = Table<String, Generation>()
        return FaultySubject.with {
            $0.changeHub = hub
            let service = $0.service
            $0.commit = { (base, changes) async throws(TokenStorageError) in
                let commit = try await base.commit(changes)
                if changes.first?.key == "last", let old = first.value(of: "key 0") {
                    hub.publish(service: service, .stored("key 0", old))
                } else if let change = changes.first, let generation = commit.generation {
                    _ = first.value(of: change.key.name, or: generation)
                }
                return commit
            }
        }
    },
    Mutant("takes locked for absent", caughtBy: "before the first unlock every call is locked, never absent")
    {
        $0.readError = { $0.code == .locked ? nil : $0 }
    },
    Mutant("takes locked-again for absent", caughtBy: "locked again, when-unlocked items are locked and stay")
    {
        $0.readError = { $0.code == .locked ? nil : $0 }
    },
    Mutant(
        "forgets to count what it hides",
        caughtBy: "locked again, a list hides when-unlocked items and counts them"
    ) {
        $0.listing = { TokenListing(items: $0.items) }
    },
    Mutant(
        "deletes what it can see when asked for all",
        caughtBy: "locked again, deleteAll deletes all or nothing"
    ) {
        $0.deleteAllItems = { (base) async throws(TokenStorageError) in
            let keys = try await base.list().items.map(\.key)
            try await base.commit(keys.map { .delete($0) })
            return keys.count
        }
    },
    Mutant(
        "takes another device's items for absent",
        caughtBy: "on another device, items that stay are wrongDevice, never absent"
    ) {
        $0.readError = { $0.code == .wrongDevice ? nil : $0 }
    },
    Mutant(
        "keeps items of a passcode that is gone", caughtBy: "taking the passcode away destroys its items only"
    ) {
        FaultySubject(strayVault: InMemoryVault())
    },
    Mutant("has a blocking view of something else", caughtBy: "the blocking view is the same storage") {
        FaultySubject(strayVault: InMemoryVault())
    },
    Mutant("answers after it was closed", caughtBy: "a closed storage is closed to every call") {
        FaultySubject(strayVault: InMemoryVault())
    },
    Mutant("takes closed for absent", caughtBy: "a closed storage is closed to every call") {
        $0.readError = { $0.code == .closed ? nil : $0 }
    },
    Mutant("answers from a cache", caughtBy: "another handle sees an acknowledged change at once") {
        let cache = Table<String, Secret>()
        $0.secret = { cache.value(of: "first ever read", or: $0) }
    },
    Mutant(
        "names keys in its errors",
        caughtBy: "errors name the operation and the backend, and never what is stored"
    ) {
        $0.commit = { (base, changes) async throws(TokenStorageError) in
            do throws(TokenStorageError) {
                return try await base.commit(changes)
            } catch let failure {
                var error = failure
                error.reason = .other(explanation: nil, advice: "look at \(changes.first?.key.name ?? "it")")
                throw error
            }
        }
    },
]

private func oneByOne(
    _ base: any TokenStorage, _ changes: [TokenChange], yielding: Bool = false
) async throws(TokenStorageError) -> TokenCommit {
    var commit = TokenCommit(generation: nil, existed: [])
    for change in changes {
        let one = try await base.commit([change])
        commit.generation = one.generation ?? commit.generation
        commit.existed += one.existed
        if yielding { for _ in 0..<20 { await Task.yield() } }
    }
    return commit
}

/// A table that tasks share and that only grows.
final class Table<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let entries = Mutex<[Key: Value]>([:])

    func value(of key: Key) -> Value? { entries.withLock { $0[key] } }

    /// What is there, or `value`, which then is there.
    func value(of key: Key, or value: Value) -> Value {
        entries.withLock { entries in
            if let there = entries[key] { return there }
            entries[key] = value
            return value
        }
    }
}

extension TokenChange {
    fileprivate var isStore: Bool { if case .store = action { true } else { false } }

    fileprivate var expectingAnything: TokenChange {
        var change = self
        change.expectation = .any
        return change
    }
}
