import TokenVault

extension TokenStorageConformance {
    static let policyChecks: [ConformanceCheck] = [
        ConformanceCheck("the default policy is a supported one") { scene in
            let storage = try await scene.storage()
            try expect(
                storage.supportedPolicies.contains(storage.defaultPolicy), "a supported default policy",
                found: storage.defaultPolicy.rawValue)
        },
        ConformanceCheck("every supported policy is kept and reported") { scene in
            let storage = try await scene.storage()
            for policy in storage.supportedPolicies {
                let key = TokenKey(policy.rawValue)
                try await storage.store(token: policy.rawValue, for: key, policy: policy)
                let item = try require(try await storage.item(for: key), "the item")
                try expect(item.metadata.policy, is: policy, "the policy")
                try expect(item.secret, is: Secret(utf8: policy.rawValue), "the secret")
            }
        },
        ConformanceCheck("an update moves an item from any policy to any other") { scene in
            let storage = try await scene.storage()
            for old in storage.supportedPolicies {
                for new in storage.supportedPolicies {
                    try await storage.store(token: "kept", for: "key", policy: old)
                    try await storage.commit([.update("key", details: TokenDetails(policy: new))])
                    let item = try require(try await storage.item(for: "key"), "the item")
                    try expect(item.metadata.policy, is: new, "the policy")
                    try expect(item.secret, is: Secret(utf8: "kept"), "the secret")
                }
            }
        },
        ConformanceCheck("a policy that is not supported is refused, never weakened") { scene in
            let storage = try await scene.storage()
            try await storage.store(token: "kept", for: "old")
            let before = try await storage.metadata(for: "old")
            for policy in AccessPolicy.allCases where !storage.supportedPolicies.contains(policy) {
                try await expectRefusal(.unsupportedPolicy, of: "store") {
                    try await storage.store(token: "x", for: "new", policy: policy)
                }
                try await expectRefusal(.unsupportedPolicy, of: "update") {
                    try await storage.commit([.update("old", details: TokenDetails(policy: policy))])
                }
            }
            try expect(try await storage.retrieve(for: "new"), is: nil, "the new key")
            try expect(try await storage.metadata(for: "old"), is: before, "the old item's metadata")
        },
    ]
}
