import TokenVaultPlatform

/// What was stored in the person's own keyring and is not deleted yet: the services that have items there.
final class Leftovers: Sendable {
    private let services = Monitor<[String]>([])

    /// Items of `service` are about to be stored.
    func add(_ service: String) {
        services.withLock { if !$0.contains(service) { $0.append(service) } }
    }

    /// None of them are there any more.
    func remove(_ service: String) { services.withLock { $0.removeAll { $0 == service } } }

    /// Whether there are none.
    var isEmpty: Bool { services.withLock(\.isEmpty) }

    /// Says what is there, and how to be rid of it.
    func tell() {
        for service in services.withLock({ $0 }) {
            let text =
                "vaultctl: note: the items of the service \"\(service)\" stay in your keyring, which did not delete them: "
                + "\"vaultctl delete --all --yes --backend secret-service --service '\(service)'\" does, once it is unlocked\n"
            try? StandardStream.error.write(Array(text.utf8))
        }
    }
}
