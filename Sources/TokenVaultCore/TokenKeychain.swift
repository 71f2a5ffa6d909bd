/// A keychain that holds the items of several services. A migration can move it as a whole.
public protocol TokenKeychain: Sendable {
    /// The type of the keychain's storages.
    associatedtype Storage: TokenStorage

    /// Returns the storage of one service. With an unusable service every call throws `invalidArgument`.
    func storage(service: String) -> Storage

    /// Returns the services that have items. Throws `locked` when nothing was unlocked yet, and as
    /// ``TokenStorage/list(_:)``.
    func services() async throws(TokenStorageError) -> ServiceListing
}

/// The services that have items in a keychain.
public struct ServiceListing: Sendable {
    /// The services that can be shown, in the order of their bytes.
    public var services: [String]
    /// The number of items in the whole keychain that cannot be shown now: they are locked, or belong to
    /// another device. Their services may be unknown.
    public var hidden: Int
    /// The number of hidden items by error, as far as the keychain reports it: see
    /// ``TokenListing/hiddenReasons``.
    public var hiddenReasons: [TokenStorageError.Code: Int]
    /// The number of items of other programs that were examined and belong to none of ``services``.
    public var passedOver: Int

    /// Creates a listing, for keychains.
    public init(
        services: [String], hidden: Int = 0, hiddenReasons: [TokenStorageError.Code: Int] = [:],
        passedOver: Int = 0
    ) {
        self.services = services
        self.hidden = hidden
        self.hiddenReasons = hiddenReasons
        self.passedOver = passedOver
    }

    /// Creates a listing of the services in `listing`, each once.
    package init(of listing: TokenListing) {
        let names = Set(listing.items.map { TokenKey($0.service) })
        self.init(
            services: names.sorted().map(\.name), hidden: listing.hidden, hiddenReasons: listing.hiddenReasons
        )
    }
}
