internal import TokenVaultCore

/// The Secret Service backend's errors. The operation is filled in by the call that people see.
extension TokenStorageError {
    static let secretServiceBackend = "secret-service"

    static func secretService(
        _ code: Code, _ reason: Reason? = nil, generation: Generation? = nil
    ) -> TokenStorageError {
        TokenStorageError(
            code, operation: "", backend: secretServiceBackend, reason: reason, generation: generation)
    }

    /// There is no session bus, or it cannot be reached.
    static func noBus(_ reason: String) -> TokenStorageError {
        .secretService(.unavailable, .noSessionBus(reason))
    }

    /// The bus went away during the call.
    static var busIsLost: TokenStorageError { .secretService(.unavailable, .keyring(.busLost)) }

    /// No program on the bus provides the Secret Service.
    static func noService(_ reason: String) -> TokenStorageError {
        .secretService(.unavailable, .noSecretService(reason))
    }

    /// The bus knows a service, which did not start.
    static func didNotStart(_ reason: String) -> TokenStorageError {
        .secretService(.unavailable, .serviceDidNotStart(reason))
    }

    /// The service ended, or was replaced by another one, during the call.
    static func serviceIsLost(_ reason: String) -> TokenStorageError {
        .secretService(.unavailable, .serviceEnded(reason))
    }

    /// The keyring is locked. The call may not prompt the user, or the keyring stayed locked after the
    /// prompt.
    static var keyringIsLocked: TokenStorageError {
        .secretService(.locked, .keyring(.locked))
    }

    /// A change of an item that another program made.
    static var itemOfAnotherProgram: TokenStorageError {
        .secretService(.notPermitted, .permission(.itemOfAnotherProgram))
    }

    /// The person said no.
    static var promptWasDismissed: TokenStorageError {
        .secretService(.locked, .keyring(.promptDismissed))
    }

    /// There is no collection to keep items in.
    static func noCollection(_ name: String?) -> TokenStorageError {
        name == nil
            ? .secretService(.unavailable, .keyring(.noDefault))
            : .secretService(.unavailable, .keyring(.noneOfThatName))
    }

    /// What an error of the bus or of the service means, when the call has no better use for it.
    static func bus(_ name: String, _ text: String) -> TokenStorageError {
        let said = "\(name): \(text)"
        switch name {
        case BusErrorName.serviceUnknown, BusErrorName.nameHasNoOwner: return .noService(said)
        case BusErrorName.noReply, BusErrorName.disconnected: return .serviceIsLost(said)
        case BusErrorName.isLocked: return .keyringIsLocked
        case BusErrorName.accessDenied:
            return .secretService(.notPermitted, .busDenied(said))
        case BusErrorName.limitsExceeded, BusErrorName.noMemory:
            return .secretService(.resourcesExhausted, .busError(said))
        default:
            // `org.freedesktop.DBus.Error.Spawn.*`: the bus knows the service, but the service did not start.
            if name.hasPrefix(BusErrorName.spawnPrefix) { return .didNotStart(said) }
            return .secretService(.ioFailure, .busError(said))
        }
    }
}

/// Names of errors on the bus.
enum BusErrorName {
    static let serviceUnknown = "org.freedesktop.DBus.Error.ServiceUnknown"
    static let nameHasNoOwner = "org.freedesktop.DBus.Error.NameHasNoOwner"
    static let spawnPrefix = "org.freedesktop.DBus.Error.Spawn."
    static let noReply = "org.freedesktop.DBus.Error.NoReply"
    static let disconnected = "org.freedesktop.DBus.Error.Disconnected"
    static let accessDenied = "org.freedesktop.DBus.Error.AccessDenied"
    static let limitsExceeded = "org.freedesktop.DBus.Error.LimitsExceeded"
    static let noMemory = "org.freedesktop.DBus.Error.NoMemory"
    static let isLocked = "org.freedesktop.Secret.Error.IsLocked"
    static let noSession = "org.freedesktop.Secret.Error.NoSession"

    /// Whether it says that the service does not offer the call.
    static func isNoMethod(_ name: String) -> Bool {
        ["UnknownMethod", "UnknownInterface", "NotSupported"].contains {
            name == "org.freedesktop.DBus.Error.\($0)"
        }
    }

    /// Whether it says that the object is not there: each service says so in its own way.
    static func isNoObject(_ name: String) -> Bool {
        name == "org.freedesktop.Secret.Error.NoSuchObject"
            || name == "org.freedesktop.DBus.Error.UnknownObject"
            || name == "org.freedesktop.DBus.Error.UnknownMethod"
    }
}
