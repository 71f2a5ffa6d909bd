import TokenVault

extension TokenStorageConformance {
    static let deviceChecks: [ConformanceCheck] = [
        ConformanceCheck(
            "on another device, items that stay are wrongDevice, never absent", requires: [.devices]
        ) { scene in
            let (storage, policies) = try await copied(scene)
            for policy in policies where policy.isThisDeviceOnly {
                let key = TokenKey(policy.rawValue)
                try await expectRefusal(.wrongDevice, of: "secret(for:)") {
                    try await storage.secret(for: key)
                }
                try await expectRefusal(.wrongDevice, of: "item(for:)") { try await storage.item(for: key) }
                try await expectRefusal(.wrongDevice, of: "metadata(for:)") {
                    try await storage.metadata(for: key)
                }
            }
            try expect(try await storage.secret(for: "absent"), is: nil, "a missing key")
        },
        ConformanceCheck("on another device, portable items work", requires: [.devices]) { scene in
            let (storage, policies) = try await copied(scene)
            for policy in policies where !policy.isThisDeviceOnly {
                let key = TokenKey(policy.rawValue)
                try expect(try await storage.retrieve(for: key), is: "token of \(key)", "the secret")
                try await storage.store(token: "replaced", for: key)
                try expect(try await storage.retrieve(for: key), is: "replaced", "the replaced secret")
            }
        },
        ConformanceCheck(
            "on another device, a list hides and counts the items that stay", requires: [.devices]
        ) { scene in
            let (storage, policies) = try await copied(scene)
            let portable = policies.filter { !$0.isThisDeviceOnly }
            let listing = try await storage.list()
            try expect(
                listing.items.map(\.key), is: portable.map { TokenKey($0.rawValue) }.sorted(),
                "the keys listed")
            try expect(listing.hidden, is: policies.count - portable.count, "the number hidden")
        },
        ConformanceCheck("another device destroys nothing that it cannot read", requires: [.devices]) {
            scene in
            let (storage, policies) = try await copied(scene)
            for policy in policies where policy.isThisDeviceOnly {
                let key = TokenKey(policy.rawValue)
                try await expectRefusal(.wrongDevice, of: "a replace") {
                    try await storage.store(token: "x", for: key, policy: .whenUnlocked)
                }
                try await expectRefusal(.wrongDevice, of: "delete") { try await storage.delete(for: key) }
                try await expectRefusal(.wrongDevice, of: "rename") {
                    try await storage.commit([.rename(key, to: "elsewhere")])
                }
            }
            let before = try await storage.list()
            try await expectRefusal(.wrongDevice, of: "deleteAll()") { try await storage.deleteAll() }
            try expect(try await storage.list(), is: before, "the listing")
        },
        ConformanceCheck("the original device still reads what a copy could not", requires: [.devices]) {
            scene in
            let (_, policies) = try await copied(scene)
            try await scene.subject.setDevice(isOriginal: true)
            let storage = try await scene.storage()
            for policy in policies where policy.isThisDeviceOnly {
                let key = TokenKey(policy.rawValue)
                try expect(try await storage.retrieve(for: key), is: "token of \(key)", "the secret")
            }
        },
        ConformanceCheck("without a passcode its policy is not supported", requires: [.passcode]) { scene in
            try await scene.subject.setPasscode(isSet: false)
            let storage = try await scene.storage()
            let policy = AccessPolicy.whenPasscodeSetThisDeviceOnly
            try expect(storage.supportedPolicies.contains(policy), is: false, "whether it is supported")
            try await expectRefusal(.unsupportedPolicy, of: "store") {
                try await storage.store(token: "x", for: "key", policy: policy)
            }
            try expect(try await storage.secret(for: "key"), is: nil, "the key")
        },
        ConformanceCheck("taking the passcode away destroys its items only", requires: [.passcode]) { scene in
            try await storeOneOfEach(scene)
            try await scene.subject.setPasscode(isSet: false)
            try await scene.subject.setPasscode(isSet: true)
            let storage = try await scene.storage()
            for policy in AccessPolicy.allCases {
                let key = TokenKey(policy.rawValue)
                let expected = policy == .whenPasscodeSetThisDeviceOnly ? nil : "token of \(key)"
                try expect(try await storage.retrieve(for: key), is: expected, "the item of \(policy)")
            }
        },
    ]

    /// One item of each policy that the original supports, then the storage on another device.
    private static func copied(
        _ scene: TestFixture
    ) async throws -> (storage: any TokenStorage, policies: Set<AccessPolicy>) {
        let policies = try await scene.storage().supportedPolicies
        try await storeOneOfEach(scene)
        try await scene.subject.setDevice(isOriginal: false)
        return (try await scene.storage(), policies)
    }
}
