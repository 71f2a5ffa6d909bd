import TokenVaultPlatform

/// The services in the user's own keyring that still have items of the benchmark.
final class Leftovers: Sendable {
    private let services = Monitor<[String]>([])

    /// Records that items of `service` are about to be stored.
    func add(_ service: String) {
        services.withLock { if !$0.contains(service) { $0.append(service) } }
    }

    /// Records that no items of `service` are left.
    func remove(_ service: String) { services.withLock { $0.removeAll { $0 == service } } }

    /// Whether no items are left.
    var isEmpty: Bool { services.withLock(\.isEmpty) }

    /// Reports the remaining services and the command that deletes them.
    func tell() {
        for service in services.withLock({ $0 }) {
            let text =
                "vaultctl: note: the keyring did not delete the items of the service \"\(service)\": unlock it, then run "
                + "\"vaultctl delete --all --yes --backend secret-service --service '\(service)'\"\n"
            try? StandardStream.error.write(Array(text.utf8))
        }
    }
}
