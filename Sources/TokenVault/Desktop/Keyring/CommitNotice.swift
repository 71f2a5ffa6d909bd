/// What a writer tells the other TokenVaults on the bus: which keys its commit changed.
enum CommitNotice {
    static let interface = "org.tokenvault.Commits"
    static let path = "/org/tokenvault/Commits"
}
