import ProgramSupport
import SystemPackage
import TokenVaultPlatform

/// Where a command writes a file of its own.
enum OutputPlace {
    /// Throws when something is there already, or the directory is missing or takes no files: that is not the vault's, and better
    /// known before than after the work.
    static func requireFree(_ path: FilePath) throws(CommandFailure) {
        let parent = path.parent
        let (hasParent, exists): (Bool, Bool)
        do throws(SystemFailure) {
            hasParent = parent.isEmpty ? true : try SmallFile.exists(parent)
            exists = try SmallFile.exists(path)
        } catch {
            throw CommandFailure(error, "the directory to write to", "choose another path")
        }
        guard hasParent else {
            throw CommandFailure(
                .unavailable, "there is no directory \(CommandFailure.printable(parent.string))",
                "make it, or choose another path")
        }
        if exists { throw CommandFailure(.conflict, "the file is there already", "choose another name") }
        do throws(SystemFailure) { try SmallFile.requirePlace(path) } catch {
            throw CommandFailure(error, "the directory to write to", "choose another path")
        }
    }
}
