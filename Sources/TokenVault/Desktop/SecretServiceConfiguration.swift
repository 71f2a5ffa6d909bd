/// How a ``SecretService`` is reached, and how far it may go.
public struct SecretServiceConfiguration: Sendable, Equatable {
    /// Which bus the service is on.
    public enum Bus: Sendable, Hashable {
        /// The person's session: GLib finds it as every desktop program does.
        case session
        /// A bus at a D-Bus address, as `unix:path=/run/user/1000/bus`.
        case address(String)
    }

    /// Which keyring of the person new items go to. Items are looked for in every keyring, and replaced and
    /// deleted where they are; of several items of one key, the one in this keyring counts.
    public enum Collection: Sendable, Hashable {
        /// The one that the service calls `default`: on most desktops the login keyring.
        case `default`
        /// The one with this label, else the one with this alias (`login`, `session`). Where several have the
        /// label, the one whose object path comes first.
        case named(String)
    }

    /// Whether the person may be asked, to unlock a keyring or to make one.
    public enum Prompting: Sendable, Hashable {
        /// Never: a locked keyring is `locked`.
        case never
        /// Yes; each prompt may take this long, on top of ``SecretServiceConfiguration/timeout``. Then it
        /// is taken back and the call is `timedOut`.
        case allowed(within: Duration)
    }

    /// Which bus. The session's by default.
    public var bus: Bus
    /// Which keyring new items go to. The default one by default.
    public var collection: Collection
    /// Whether a missing keyring is made, which asks the person for its password. False by default.
    public var createsCollection: Bool
    /// Whether the person may be asked. Within a minute by default.
    public var prompting: Prompting
    /// How long each call may take, prompts aside. 30 seconds by default.
    public var timeout: Duration
    /// Whether secrets may cross the bus unencrypted when the service offers nothing better. False by
    /// default: such a service is `notPermitted`.
    public var allowsPlainSession: Bool
    /// Whether items that other programs made are read where TokenVault has none of that service and key: those
    /// with the attributes `service` and `account`. False by default. Such items are never changed or deleted.
    public var readsOtherPrograms: Bool

    /// A configuration.
    public init(
        bus: Bus = .session, collection: Collection = .default, createsCollection: Bool = false,
        prompting: Prompting = .allowed(within: .seconds(60)), timeout: Duration = .seconds(30),
        allowsPlainSession: Bool = false, readsOtherPrograms: Bool = false
    ) {
        self.bus = bus
        self.collection = collection
        self.createsCollection = createsCollection
        self.prompting = prompting
        self.timeout = timeout
        self.allowsPlainSession = allowsPlainSession
        self.readsOtherPrograms = readsOtherPrograms
    }
}
