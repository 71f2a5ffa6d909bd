#if OAuth
import Foundation
import Glibc
import Testing

/// A `vaultctl-oauth` that says what a test wants said, and keeps what it was asked.
struct SaidWorker {
    /// What it does when it is asked, in the shell; `$line` is the request.
    var signIn = SaidWorker.signedIn("fake-1")
    var refresh = "sleep 1000"
    var revoke = #"echo '{"revoked":{}}'"#

    /// Metadata with a place to revoke tokens at.
    static let metadata = #"{\"revocation_endpoint\":\"https://id.example.com/revoke\"}"#

    /// The end of a sign-in that brings `token`, and with it a refresh token that is called after it.
    static func signedIn(_ token: String, _ more: String = "", metadata: String = metadata) -> String {
        let tokens =
            #"{"accessToken":"\#(token)","refreshToken":"refresh-of-\#(token)","tokenType":"Bearer"\#(more)}"#
        return
            #"echo '{"signedIn":{"_0":{"tokens":\#(tokens),"metadata":"\#(metadata)","authentication":"none"}}}'"#
    }

    /// What has a person shown where to sign in.
    static let open = #"echo '{"open":{"address":"https://id.example.com/authorize"}}'"#

    /// The end of a refresh.
    static func refreshed(_ token: String, _ more: String = "") -> String {
        #"echo '{"refreshed":{"_0":{"accessToken":"\#(token)","refreshToken":"refresh-of-\#(token)"\#(more)}}}'"#
    }

    /// An end that is over already, for a sign-in's tokens.
    static let expired = #","accessTokenExpiry":1000000000"#

    func place(in home: SignInHome) throws {
        try home.place(
            .script(
                """
                IFS= read -r line; printf '%s\\n' "$line" >>'\(home.path)/asked'
                case $line in
                *'"operation":{"revoke"'*) \(revoke) ;;
                *'"operation":{"refresh"'*) \(refresh) ;;
                *) \(signIn) ;;
                esac
                """))
    }
}

extension SignInHome {
    /// What the worker was asked to do, request by request: `refresh`, `revoke`, or the flow of a sign-in.
    func asked(_ operation: String) -> [String] {
        (contents("asked") ?? "").split(separator: "\n").map(String.init)
            .filter { request in
                request.contains("\"operation\":{\"\(operation)\"")
                    || request.contains("\"operation\":{\"signIn\"")
                        && request.contains("\"flow\":\"\(operation)\"")
            }
    }

    /// Signs in at `issuer` as the profile `work`, with a worker that needs no person.
    func signIn(at issuer: String, _ more: String...) throws -> RunningCommand {
        try start(
            ["login", "work", "--issuer", issuer, "--client-id", "fake", "--no-browser"] + more)
    }
}

/// Something that holds others up, and that ends with them: a file that is locked, or a pipe that they have open.
final class Gate {
    let path: String
    private let descriptor: CInt

    /// A lock that is held. `flock -s PATH true` waits for it.
    init(holding path: String) throws {
        self.path = path
        descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        try #require(flock(descriptor, LOCK_EX) == 0)
    }

    /// Makes a pipe that tells whether any process has it open for writing.
    init(watching path: String) throws {
        self.path = path
        try #require(mkfifo(path, 0o600) == 0)
        descriptor = Glibc.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        try #require(descriptor >= 0)
    }

    deinit { close(descriptor) }

    func open() { flock(descriptor, LOCK_UN) }

    /// Waits until a process writes to the pipe, for five minutes at most.
    func wait() {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        poll(&waiting, 1, 300_000)
        var byte: UInt8 = 0
        _ = read(descriptor, &byte, 1)
    }

    /// Whether every process has closed the pipe, in a minute at most: programs that were killed take a
    /// moment to end.
    func isSoonLeft() -> Bool {
        var waiting = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&waiting, 1, 60_000) == 1 && waiting.revents & Int16(POLLHUP) != 0
    }

    /// Whether every process has closed the pipe.
    var isLeft: Bool {
        var byte: UInt8 = 0
        return read(descriptor, &byte, 1) == 0
    }
}
#endif
