import Glibc

/// A new directory below `parent`, which only this user may enter, while `body` runs.
nonisolated(nonsending) public func withTemporaryDirectory(
    in parent: String, _ body: nonisolated(nonsending) (_ path: String) async throws -> Void
) async throws {
    var template = Array("\(parent)/tokenvault-benchmark-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else { throw POSIXFailure(number: errno) }
    let path = String(cString: made)
    defer { run(command: ["rm", "-rf", path]) }
    try await body(path)
}

/// What a system call failed with.
public struct POSIXFailure: Error {
    /// The value of `errno`.
    public let number: CInt

    /// That number.
    public init(number: CInt) { self.number = number }
}
