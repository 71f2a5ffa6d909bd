import Glibc
import Measuring

/// A program that does what it is told in a line, `store KEY` or `lookup KEY`, and answers with nanoseconds: it times itself,
/// so that the pipe to it costs it nothing.
final class Loop {
    private let command: [String]
    private let process: pid_t
    private let commands: UnsafeMutablePointer<FILE>
    private let answers: UnsafeMutablePointer<FILE>

    init(_ command: [String]) throws {
        var (input, output): ([CInt], [CInt]) = ([0, 0], [0, 0])
        guard pipe(&input) == 0, pipe(&output) == 0 else { throw POSIXFailure(number: errno) }
        // If a loop inherited the pipe of another loop, the other loop would never see the end of its input.
        for end in input + output { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO)
        var words: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process = pid_t()
        let result = posix_spawnp(&process, command[0], &actions, nil, &words, environ)
        close(input[0])
        close(output[1])
        guard result == 0, let commands = fdopen(input[1], "w"), let answers = fdopen(output[0], "r") else {
            throw POSIXFailure(number: result)
        }
        (self.command, self.process) = (command, process)
        (self.commands, self.answers) = (commands, answers)
    }

    deinit {
        fclose(commands)
        fclose(answers)
        waitpid(process, nil, 0)
    }

    /// How long `operation` took it, in microseconds.
    func time(_ operation: String, _ key: String) -> Double {
        fputs("\(operation) \(key)\n", commands)
        fflush(commands)
        var line = [CChar](repeating: 0, count: 64)
        guard fgets(&line, 64, answers) != nil else {
            Report.say("\(command.joined(separator: " ")) failed to \(operation)")
            exit(1)
        }
        return strtod(line, nil) / 1_000
    }
}
