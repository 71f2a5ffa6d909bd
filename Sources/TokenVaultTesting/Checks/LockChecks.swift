import TokenVault

extension TokenStorageConformance {
    static let lockChecks: [ConformanceCheck] = [
        ConformanceCheck("a storage reports its lock state", requires: [.lockStates]) { scene in
            try expect(try await scene.storage().lockState(), is: .unlocked, "the state at first")
            for state in [LockState.afterFirstUnlock, .unlocked, .locked, .unlocked] {
                try await scene.subject.setLockState(state)
                try expect(try await scene.storage().lockState(), is: state, "the state")
            }
        },
        ConformanceCheck(
            "before the first unlock every call is locked, never absent", requires: [.lockStates]
        ) { scene in
            try await storeOneOfEach(scene)
            try await scene.subject.setLockState(.locked)
            let storage = try await scene.storage()
            for key in storage.supportedPolicies.map({ TokenKey($0.rawValue) }) + ["absent"] {
                try await expectRefusal(.locked, of: "secret(for:)") { try await storage.secret(for: key) }
                try await expectRefusal(.locked, of: "item(for:)") { try await storage.item(for: key) }
                try await expectRefusal(.locked, of: "metadata(for:)") {
                    try await storage.metadata(for: key)
                }
                try await expectRefusal(.locked, of: "contains(for:)") {
                    try await storage.contains(for: key)
                }
                try await expectRefusal(.locked, of: "delete") { try await storage.delete(for: key) }
                try await expectRefusal(.locked, of: "store") {
                    try await storage.store(token: "x", for: key)
                }
            }
            try await expectRefusal(.locked, of: "list(_:)") { try await storage.list() }
            try await expectRefusal(.locked, of: "deleteAll()") { try await storage.deleteAll() }
        },
        ConformanceCheck("unlocking shows everything as it was", requires: [.lockStates]) { scene in
            try await storeOneOfEach(scene)
            let before = try await scene.storage().list()
            for state in [LockState.afterFirstUnlock, .locked] {
                try await scene.subject.setLockState(state)
                try await scene.subject.setLockState(.unlocked)
                let storage = try await scene.storage()
                try expect(try await storage.list(), is: before, "the listing")
                for item in before.items {
                    try expect(
                        try await storage.retrieve(for: item.key), is: "token of \(item.key)", "the secret")
                }
            }
        },
        ConformanceCheck("locked again, after-first-unlock items work", requires: [.lockStates]) { scene in
            let storage = try await lockedAgain(scene)
            for policy in storage.supportedPolicies where policy.isReadableAfterFirstUnlock {
                let key = TokenKey(policy.rawValue)
                try expect(try await storage.retrieve(for: key), is: "token of \(key)", "the secret")
                try expect(try await storage.metadata(for: key)?.policy, is: policy, "the policy")
                try await storage.store(token: "replaced", for: key)
                try expect(try await storage.retrieve(for: key), is: "replaced", "the replaced secret")
                try await storage.commit([.update(key, details: TokenDetails(label: "label"))])
                try expect(try await storage.metadata(for: key)?.label, is: "label", "the label")
                try await storage.store(token: "new", for: "new", policy: policy)
                try expect(try await storage.delete(for: "new"), is: true, "whether the new one was there")
                try expect(try await storage.delete(for: key), is: true, "whether it was there")
                try expect(try await storage.secret(for: key), is: nil, "the deleted item")
            }
        },
        ConformanceCheck("locked again, when-unlocked items are locked and stay", requires: [.lockStates]) {
            scene in
            let storage = try await lockedAgain(scene)
            let dark = storage.supportedPolicies.filter { !$0.isReadableAfterFirstUnlock }
            for key in dark.map({ TokenKey($0.rawValue) }) {
                try await expectRefusal(.locked, of: "secret(for:)") { try await storage.secret(for: key) }
                try await expectRefusal(.locked, of: "item(for:)") { try await storage.item(for: key) }
                try await expectRefusal(.locked, of: "metadata(for:)") {
                    try await storage.metadata(for: key)
                }
                try await expectRefusal(.locked, of: "a replace") {
                    try await storage.store(token: "x", for: key)
                }
                try await expectRefusal(.locked, of: "a replace with another policy") {
                    try await storage.store(token: "x", for: key, policy: .afterFirstUnlock)
                }
                try await expectRefusal(.locked, of: "delete") { try await storage.delete(for: key) }
                try await expectRefusal(.locked, of: "update") {
                    try await storage.commit([.update(key, details: TokenDetails(label: "x"))])
                }
                try await expectRefusal(.locked, of: "rename") {
                    try await storage.commit([.rename(key, to: "elsewhere")])
                }
                try await expectRefusal(.locked, .conflict, of: "store-if-absent") {
                    try await storage.compareAndStore(Secret([1]), for: key, expected: nil)
                }
            }
            try await scene.subject.setLockState(.unlocked)
            let unlocked = try await scene.storage()
            for policy in dark {
                let key = TokenKey(policy.rawValue)
                try expect(try await unlocked.retrieve(for: key), is: "token of \(key)", "the secret")
            }
            try expect(
                try await unlocked.contains(for: "elsewhere"), is: false, "whether the new name is there")
        },
        ConformanceCheck("locked again, a missing key is absent", requires: [.lockStates]) { scene in
            let storage = try await lockedAgain(scene)
            try expect(try await storage.secret(for: "absent"), is: nil, "secret(for:)")
            try expect(try await storage.metadata(for: "absent"), is: nil, "metadata(for:)")
            try expect(try await storage.delete(for: "absent"), is: false, "whether it was there")
        },
        ConformanceCheck(
            "locked again, a list hides when-unlocked items and counts them", requires: [.lockStates]
        ) { scene in
            let storage = try await lockedAgain(scene)
            let dark = storage.supportedPolicies.filter { !$0.isReadableAfterFirstUnlock }.count
            let shown = storage.supportedPolicies.filter(\.isReadableAfterFirstUnlock)
            let listing = try await storage.list()
            try expect(
                listing.items.map(\.key), is: shown.map { TokenKey($0.rawValue) }.sorted(), "the keys listed")
            try expect(listing.hidden, is: dark, "the number hidden")
            let none = try await storage.list(TokenQuery(prefix: "no such prefix"))
            try expect(none.items, is: [], "a query without results")
            try expect(none.hidden, is: dark, "the number hidden from a query without results")
        },
        ConformanceCheck("locked again, a new when-unlocked item is locked", requires: [.lockStates]) {
            scene in
            let storage = try await lockedAgain(scene)
            for policy in storage.supportedPolicies where !policy.isReadableAfterFirstUnlock {
                try await expectRefusal(.locked, of: "store") {
                    try await storage.store(token: "x", for: "new", policy: policy)
                }
            }
            if !storage.defaultPolicy.isReadableAfterFirstUnlock {
                try await expectRefusal(.locked, of: "a store with the default policy") {
                    try await storage.store(token: "x", for: "new")
                }
            }
            try expect(try await storage.secret(for: "new"), is: nil, "the new key")
        },
        ConformanceCheck("locked again, an item cannot move into a locked class", requires: [.lockStates]) {
            scene in
            let storage = try await lockedAgain(scene)
            let open = storage.supportedPolicies.filter(\.isReadableAfterFirstUnlock)
            let dark = storage.supportedPolicies.filter { !$0.isReadableAfterFirstUnlock }
            for old in open {
                for new in dark {
                    try await expectRefusal(.locked, of: "\(old) to \(new)") {
                        let details = TokenDetails(policy: new)
                        return try await storage.commit([.update(TokenKey(old.rawValue), details: details)])
                    }
                }
                let found = try await storage.metadata(for: TokenKey(old.rawValue))?.policy
                try expect(found, is: old, "the policy")
            }
        },
        ConformanceCheck(
            "locked again, a commit with one locked change changes nothing", requires: [.lockStates]
        ) { scene in
            let storage = try await lockedAgain(scene)
            guard let dark = storage.supportedPolicies.first(where: { !$0.isReadableAfterFirstUnlock }),
                let open = storage.supportedPolicies.first(where: \.isReadableAfterFirstUnlock)
            else { return }
            let good = TokenChange.store(Secret([1]), for: "new", details: TokenDetails(policy: open))
            let bad = TokenChange.delete(TokenKey(dark.rawValue))
            for changes in [[good, bad], [bad, good]] {
                try await expectRefusal(.locked, of: "commit(_:)") { try await storage.commit(changes) }
                try expect(try await storage.secret(for: "new"), is: nil, "the good change")
            }
        },
        ConformanceCheck("locked again, deleteAll deletes all or nothing", requires: [.lockStates]) { scene in
            let storage = try await lockedAgain(scene)
            let before = try await storage.list()
            if before.hidden > 0 {
                try await expectRefusal(.locked, of: "deleteAll()") { try await storage.deleteAll() }
                try expect(try await storage.list(), is: before, "the listing")
            }
            guard let open = storage.supportedPolicies.first(where: \.isReadableAfterFirstUnlock) else {
                return
            }
            let other = try await scene.storage("open only")
            try await other.store(token: "x", for: "key", policy: open)
            try expect(try await other.deleteAll(), is: 1, "how many were deleted")
        },
    ]

    /// One item of each supported policy, named after it.
    static func storeOneOfEach(_ scene: TestFixture) async throws {
        let storage = try await scene.storage()
        for policy in storage.supportedPolicies {
            let key = TokenKey(policy.rawValue)
            try await storage.store(token: "token of \(key)", for: key, policy: policy)
        }
    }

    private static func lockedAgain(_ scene: TestFixture) async throws -> any TokenStorage {
        try await storeOneOfEach(scene)
        try await scene.subject.setLockState(.afterFirstUnlock)
        return try await scene.storage()
    }
}
