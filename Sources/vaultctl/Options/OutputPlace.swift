import ProgramSupport
import SystemPackage
import TokenVaultPlatform

/// The place of a file that a command writes.
enum OutputPlace {
    /// Throws when the file exists, or the directory is missing or cannot be written to. The check comes
    /// before the work, and its failure does not concern the vault.
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
        if exists { throw CommandFailure(.conflict, "the file already exists", "choose another name") }
        do throws(SystemFailure) { try SmallFile.requirePlace(path) } catch {
            throw CommandFailure(error, "the directory to write to", "choose another path")
        }
    }
}
