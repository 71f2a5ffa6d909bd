extension Child {
    /// Whether a program may have mounts of its own here.
    static let canMount: Bool = {
        let tried = try? run(
            program: "/usr/bin/unshare", ["-rm", "/bin/true"].map { Array($0.utf8) }, environment: [:])
        return tried?.status == 0
    }()
}
