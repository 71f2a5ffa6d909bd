import Glibc

/// A process that answers with as many bytes as it is asked for, and nothing else: this program, with the word that says how it
/// waits as its only argument.
public final class Echo {
    /// How both ends wait for what comes.
    public enum Waiting: String {
        /// They sleep until it is there.
        case sleeping = "--echo"
        /// They look for it for up to 50 µs before they sleep, as TokenVault's ends do while they talk.
        case looking = "--looking-echo"
    }

    private let socket: CInt
    private let waiting: Waiting
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)

    /// Starts it.
    public init(_ waiting: Waiting) throws {
        self.waiting = waiting
        var ends: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0 else {
            throw POSIXFailure(number: errno)
        }
        // Other child processes must not inherit this end.
        _ = fcntl(ends[0], F_SETFD, FD_CLOEXEC)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 0)
        let arguments: [String] = ["/proc/self/exe", waiting.rawValue]
        var words = arguments.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process = pid_t()
        let result = posix_spawn(&process, "/proc/self/exe", &actions, nil, &words, environ)
        close(ends[1])
        guard result == 0 else { throw POSIXFailure(number: result) }
        socket = ends[0]
    }

    deinit { close(socket) }

    /// Sends `request` bytes, which say how many the answer has, and receives those.
    public func exchange(request: Int, answer: Int) {
        withUnsafeBytes(of: UInt32(answer)) { buffer.replaceSubrange(0..<4, with: $0) }
        _ = send(socket, buffer, request, 0)
        var received = 0
        while received < answer {
            let count = Self.receive(socket, &buffer, waiting)
            guard count > 0 else {
                Report.say("the process that echoes has ended")
                exit(1)
            }
            received += count
        }
    }

    private static func receive(_ socket: CInt, _ buffer: inout [UInt8], _ waiting: Waiting) -> Int {
        if waiting == .looking {
            let end = ContinuousClock.now + .microseconds(50)
            repeat {
                let count = recv(socket, &buffer, buffer.count, CInt(MSG_DONTWAIT))
                if count >= 0 { return count }
                sched_yield()
            } while ContinuousClock.now < end
        }
        return recv(socket, &buffer, buffer.count, 0)
    }

    /// What that process does, to its end; false in one that is to do something else.
    public static func servesHere() -> Bool {
        guard CommandLine.arguments.count == 2, let waiting = Waiting(rawValue: CommandLine.arguments[1])
        else {
            return false
        }
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while receive(0, &buffer, waiting) > 0 {
            let count = buffer.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) }
            _ = send(0, buffer, Int(count), 0)
        }
        return true
    }
}
