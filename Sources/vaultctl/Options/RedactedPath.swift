import SystemPackage
import TokenVaultPlatform

extension FilePath {
    /// `what`, with where it was looked for, as an error line may say it.
    ///
    /// A passphrase that was typed in the place of a path must not end up in a log. So it is the path itself only for one
    /// from the root that leads through a directory that is there; for a word the directory that it is looked for in.
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
