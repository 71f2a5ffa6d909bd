import ProgramSupport
import SystemPackage
import TokenVaultPlatform

/// The keeper of the scratch directory: a process of its own that creates and removes the directory.
///
/// The keeper removes the directory and its contents when this program ends or no longer needs them. So the
/// directory is gone after any end, `SIGKILL` included.
final class ScratchKeeper {
    /// The path of the directory.
    let path: FilePath
    private let keeper: DependentProgram

    /// The argument that makes this program a keeper.
    static let word = "--keep-scratch"

    /// Creates a scratch directory in `directory`.
    init(in directory: FilePath, _ program: FilePath) throws(CommandFailure) {
        do throws(SystemFailure) {
            keeper = try DependentProgram(program, [Self.word, directory.string])
        } catch {
            throw CommandFailure(error, "a process to clear away", "close other programs")
        }
        // A keeper that could not create the directory has reported the reason.
        guard let said = keeper.listen(limit: 1 << 13), let path = String(validating: said, as: UTF8.self)
        else {
            throw CommandFailure(.failure, "no scratch directory could be made", "give another --directory")
        }
        guard path.hasPrefix("/") else {
            throw CommandFailure(.failure, "the scratch directory: \(path)", "give another --directory")
        }
        self.path = FilePath(path)
    }

    /// Has everything removed, and waits for that.
    func end() {
        guard keeper.finish() != 0 else { return }
        // Another process ended the keeper.
        PrivateAgent.stop(in: path)
        ScratchDirectory.removeAll(path)
    }

    /// Runs as the keeper of a scratch directory in `directory`, until standard input ends. Returns the exit
    /// status.
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
