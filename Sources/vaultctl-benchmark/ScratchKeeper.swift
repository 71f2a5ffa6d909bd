import ProgramSupport
import SystemPackage
import TokenVaultPlatform

/// Keeps the scratch directory: a process of its own that makes it, and removes it with all that is in it when this program
/// has ended or wants it no more. So it is gone after whatever end, `SIGKILL` included.
final class ScratchKeeper {
    /// Where the directory is.
    let path: FilePath
    private let keeper: DependentProgram

    /// The word that makes this program a keeper.
    static let word = "--keep-scratch"

    /// A scratch directory in `directory`.
    init(in directory: FilePath, _ program: FilePath) throws(CommandFailure) {
        do throws(SystemFailure) {
            keeper = try DependentProgram(program, [Self.word, directory.string])
        } catch {
            throw CommandFailure(error, "a process to clear away", "close other programs")
        }
        // One that could not make it has said why.
        guard let said = keeper.listen(limit: 1 << 13), let path = String(validating: said, as: UTF8.self)
        else {
            throw CommandFailure(.failure, "no scratch directory could be made", "give another --directory")
        }
        guard path.hasPrefix("/") else {
            throw CommandFailure(.failure, "the scratch directory: \(path)", "give another --directory")
        }
        self.path = FilePath(path)
    }

    /// Has everything cleared away, and waits for it.
    func end() {
        guard keeper.finish() != 0 else { return }
        // Somebody ended it.
        PrivateAgent.stop(in: path)
        ScratchDirectory.removeAll(path)
    }

    /// Is the keeper of a scratch directory in `directory`, until standard input ends. The exit status.
    static func keep(in directory: FilePath) -> Int32 {
        let scratch: ScratchDirectory
        do throws(SystemFailure) {
            scratch = try ScratchDirectory(in: directory)
        } catch {
            try? DependentProgram.say(Array(error.errno.description.utf8))
            return 1
        }
        try? DependentProgram.say(Array(scratch.path.string.utf8))
        DependentProgram.waitForEnd()
        PrivateAgent.stop(in: scratch.path)
        scratch.remove()
        return 0
    }
}
