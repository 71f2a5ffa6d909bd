import TokenVault

extension TokenStorageConformance {
    static let errorChecks: [ConformanceCheck] = [
        ConformanceCheck("errors name the operation and the backend, and never what is stored") { scene in
            let storage = try await scene.storage()
            let words = ["zebra-key", "zebra-token", "zebra-label", "zebra-name", "zebra-value", "zebra-new"]
            let details = TokenDetails(label: "zebra-label", attributes: ["zebra-name": "zebra-value"])
            try await storage.store(Secret(utf8: "zebra-token"), for: "zebra-key", details: details)
            try await storage.store(Secret([0xff]), for: "zebra-new", details: details)
            let secret = Secret(utf8: "zebra-token")
            var errors: [TokenStorageError] = []
            errors.append(
                try await expectRefusal(.conflict, of: "store-if-absent") {
                    try await storage.compareAndStore(
                        secret, for: "zebra-key", expected: nil, details: details)
                })
            errors.append(
                try await expectRefusal(.notFound, of: "update") {
                    try await storage.commit([.update("zebra-key-2", details: details)])
                })
            errors.append(
                try await expectRefusal(.alreadyExists, of: "rename") {
                    try await storage.commit([.rename("zebra-key", to: "zebra-new")])
                })
            errors.append(
                try await expectRefusal(.invalidKey, of: "store") {
                    try await storage.store(
                        secret, for: TokenKey("zebra-key" + String(repeating: "k", count: 1_024)),
                        details: details)
                })
            errors.append(
                try await expectRefusal(.invalidArgument, of: "store") {
                    let details = TokenDetails(label: "zebra-label\n")
                    return try await storage.store(secret, for: "zebra-key", details: details)
                })
            errors.append(
                try await expectRefusal(.invalidArgument, of: "a commit with a key twice") {
                    try await storage.commit([.delete("zebra-key"), .delete("zebra-key")])
                })
            errors.append(
                try await expectRefusal(.notText, of: "retrieve") {
                    try await storage.retrieve(for: "zebra-new")
                })
            errors.append(
                try await expectRefusal(.decodingFailed, of: "retrieve") {
                    try await storage.retrieve([Int].self, for: "zebra-key")
                })
            for error in errors {
                try expect(!error.operation.isEmpty && !error.backend.isEmpty, "an operation and a backend")
                let text = "\(error) \(String(reflecting: error))"
                for word in words {
                    try expect(!text.contains(word), "an error without item data", found: text)
                }
            }
        }
    ]
}
