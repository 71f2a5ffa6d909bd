import SystemPackage
import TokenVaultPlatform

extension FilePath {
    /// Returns `what` with its place, in a form that is safe for an error line.
    ///
    /// A passphrase typed in the place of a path must not end up in a log. So the path appears only if it is
    /// absolute and its first directory exists. A relative path is replaced by the directory of the search.
    func told(as what: String) -> String {
        if isRelative {
            return "\(what), looked for in \(ProgramContext.absolute(".").lexicallyNormalized())"
        }
        guard let first = components.first, components.count > 1,
            (try? PosixDirectory(FilePath(root: "/", CollectionOfOne(first)))) != nil
        else { return what }
        return "\(what) \(self)"
    }
}
