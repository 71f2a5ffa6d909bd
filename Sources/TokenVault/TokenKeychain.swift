/// A keychain that holds the items of several services: what is moved as a whole.
public protocol TokenKeychain: Sendable {
    /// The kind of its storages.
    associatedtype Storage: TokenStorage

    /// One service's view. An unusable service is `invalidArgument` in every call.
    func storage(service: String) -> Storage

    /// The services that have items. Throws `locked` when nothing was unlocked yet, and as
    /// ``TokenStorage/list(_:)``.
    func services() async throws(TokenStorageError) -> ServiceListing
}

/// Which services have items in a keychain.
public struct ServiceListing: Sendable {
    /// Those that can be shown, in the order of their bytes.
    public var services: [String]
    /// How many items of the whole keychain cannot be shown now, whose services may be unknown: they
    /// are locked, or another device's.
    public var hidden: Int
    /// Why, as far as the keychain tells: see ``TokenListing/hiddenReasons``.
    public var hiddenReasons: [TokenStorageError.Code: Int]
    /// How many items of other programs were looked at and are of none of ``services``.
    public var passedOver: Int

    /// A listing. Keychains make these.
    public init(
        services: [String], hidden: Int = 0, hiddenReasons: [TokenStorageError.Code: Int] = [:],
        passedOver: Int = 0
    ) {
        self.services = services
        self.hidden = hidden
        self.hiddenReasons = hiddenReasons
        self.passedOver = passedOver
    }

    /// The services of `listing`, each once.
    init(of listing: TokenListing) {
        let names = Set(listing.items.map { TokenKey($0.service) })
        self.init(
            services: names.sorted().map(\.name), hidden: listing.hidden, hiddenReasons: listing.hiddenReasons
        )
    }
}
