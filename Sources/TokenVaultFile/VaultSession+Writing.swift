internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultPlatform

extension VaultSession {
    /// Returns the preparation of a commit, which plans its records from the log when its turn comes.
    func preparation(
        service: String, changes: [TokenChange], existed facts: CommitFacts
    ) -> WriteRequest.Preparation {
        { [self] (view, add) throws(TokenStorageError) in
            let now = clock()
            // No change depends on another: a commit touches each key once.
            var existed: [Bool] = []
            existed.reserveCapacity(changes.count)
            var resets: [PolicyReset] = []
            try Parallel.pipeline(changes.count, each: CommitPlanner.part) {
                (range) throws(TokenStorageError) in
                try self.whileKeysAreReplaced { () throws(TokenStorageError) in
                    var planner = CommitPlanner(session: self, view: view, now: now, changes: range.count)
                    try planner.add(changes[range], of: service)
                    return (
                        drafts: planner.drafts, existed: planner.existed, resets: planner.policyResets
                    )
                }
            } take: { (part) throws(TokenStorageError) in
                existed += part.existed
                resets += part.resets
                try add(part.drafts)
            }
            facts.set(existed, resets)
        }
    }

    /// Returns the preparation that deletes all items of a service that exist when its turn comes.
    func deletionOfAll(
        service: String, existed: CommitFacts
    ) -> WriteRequest.Preparation {
        { [self] (view, add) throws(TokenStorageError) in
            var planner = CommitPlanner(session: self, view: view, now: clock(), changes: 0)
            let tag = try log.codec.tag(ofService: service)
            for (item, found) in try view.items(where: { $0.serviceTag == tag }) {
                try self.whileKeysAreReplaced { () throws(TokenStorageError) in
                    try planner.delete(item, found)
                }
            }
            existed.set([Bool](repeating: true, count: planner.drafts.count), [])
            try add(planner.drafts)
        }
    }

    /// Removes items whose class keys were destroyed, with the last passphrase or with a device. Only the
    /// keybag in use tells which: items of a class that came since the keys were read are not among them.
    func removeDestroyedItems() throws(TokenStorageError) {
        // This looks first: most unlocks find none, and a reader should not wait for writers.
        let mayBeAny = try log.withCheckedState { [self] state in state.index.mayHave(isDestroyed) }
        guard mayBeAny else { return }
        _ = try queue.commit { [self] (view, add) throws(TokenStorageError) in
            // Other processes may have written since; from here on, none does.
            let replacements = ring.replacements
            guard ring.isOf(log.keybagRecord), !ring.facts.isStale else { return }
            var drafts: [FrameDraft] = []
            let destroyed = try view.items { isDestroyed($0.policy, $0.setTag, $0.keyVersion) }
            for (item, found) in destroyed {
                drafts.append(
                    FrameDraft(
                        type: .deletion, policy: found.policy, keyVersion: found.keyVersion, item: item,
                        serviceTag: found.serviceTag, setTag: found.setTag))
            }
            // Other keys know of other classes.
            if ring.replacements == replacements { try add(drafts) }
        }
    }

    /// Returns whether the keys of a class were destroyed.
    func isDestroyed(_ policy: UInt8, _ setTag: UInt64, _ keyVersion: UInt32) -> Bool {
        if case .destroyed = ring.access(policy: policy, setTag: setTag, version: keyVersion) { return true }
        return false
    }
}

/// The facts that a commit found, set by the thread that wrote it.
final class CommitFacts: Sendable {
    private let value = Mutex<(existed: [Bool], policyResets: [PolicyReset])>(([], []))

    func set(_ existed: [Bool], _ policyResets: [PolicyReset]) {
        value.withLock { $0 = (existed, policyResets) }
    }

    var existed: [Bool] { value.withLock { $0.existed } }

    /// Returns the commit that was written as `generation`.
    func commit(_ generation: Generation?) -> TokenCommit {
        let (existed, policyResets) = value.withLock { $0 }
        return TokenCommit(generation: generation, existed: existed, policyResets: policyResets)
    }
}
