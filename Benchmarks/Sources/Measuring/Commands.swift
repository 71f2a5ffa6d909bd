import Glibc

/// Runs a command to its end with its output thrown away and `input`, a file, as what it reads; a failing one ends the
/// benchmark.
public func run(command: [String], input: String = "/dev/null") {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input, O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    var words: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) }
    words.append(nil)
    defer { for word in words { free(word) } }
    var process = pid_t()
    var status: CInt = 0
    guard posix_spawnp(&process, command[0], &actions, nil, words, environ) == 0,
        waitpid(process, &status, 0) == process, status == 0
    else {
        Report.say("\(command.joined(separator: " ")) failed")
        exit(1)
    }
}
