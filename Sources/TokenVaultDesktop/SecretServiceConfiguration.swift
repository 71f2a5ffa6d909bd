/// The connection of a ``SecretService``, and the limits of its actions.
public struct SecretServiceConfiguration: Sendable, Equatable {
    /// The bus of the service.
    public enum Bus: Sendable, Hashable {
        /// The user's session bus, which GLib finds as in every desktop program.
        case session
        /// A bus at a D-Bus address, as `unix:path=/run/user/1000/bus`.
        case address(String)
    }

    /// The user's keyring for new items. Items are looked for in every keyring, and are replaced and deleted
    /// where they are. If several keyrings have an item of one key, the item in this keyring counts.
    public enum Collection: Sendable, Hashable {
        /// The keyring that the service calls `default`: on most desktops the login keyring.
        case `default`
        /// The keyring with this label, else the keyring with this alias (`login`, `session`). If several
        /// have the label, the one with the first object path is used.
        case named(String)
    }

    /// Whether the user may be prompted, to unlock a keyring or to make one.
    public enum Prompting: Sendable, Hashable {
        /// No prompts: a locked keyring is `locked`.
        case never
        /// Prompts, each for at most this time, on top of ``SecretServiceConfiguration/timeout``. Then the
        /// prompt is dismissed and the call is `timedOut`.
        case allowed(within: Duration)
    }

    /// The bus of the service. Default: the session bus.
    public var bus: Bus
    /// The keyring for new items. Default: the default keyring.
    public var collection: Collection
    /// Whether a missing keyring is made, which prompts the user for its password. Default: false.
    public var createsCollection: Bool
    /// Whether the user may be prompted. Default: yes, for one minute.
    public var prompting: Prompting
    /// The time limit of each call, without prompts. Default: 30 seconds.
    public var timeout: Duration
    /// Whether secrets may cross the bus unencrypted when the service offers no encryption. Default: false;
    /// such a service is `notPermitted`.
    public var allowsPlainSession: Bool
    /// Whether items of other programs are read where TokenVault has none of that service and key. Such items
    /// have the attributes `service` and `account`. Default: false. They are never changed or deleted.
    public var readsOtherPrograms: Bool

    /// Creates a configuration.
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
