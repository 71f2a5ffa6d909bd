import ProgramSupport
import SystemPackage
import TokenVaultCrypto
import TokenVaultPlatform

/// Times the one step that an operation cannot do without on this machine.
final class LimitProbe {
    let kind: MachineLimit.Kind
    let bytes: Int
    private(set) var latencies = Latencies()
    private let perform: () throws(CommandFailure) -> Void

    private init(
        _ kind: MachineLimit.Kind, _ bytes: Int, _ perform: @escaping () throws(CommandFailure) -> Void
    ) {
        self.kind = kind
        self.bytes = bytes
        self.perform = perform
    }

    /// Runs the step once and records its duration.
    func measure() throws(CommandFailure) {
        let start = ContinuousClock.now
        try perform()
        latencies.record(start.duration(to: .now))
    }

    /// Creates a probe for `pwrite` and `fdatasync` of `bytes` bytes. The probe overwrites a file in
    /// `scratch` whose bytes were all written before.
    static func sync(of bytes: Int, in scratch: FilePath, _ label: String) throws(CommandFailure)
        -> LimitProbe
    {
        let writes = max(1, min(1_024, (8 << 20) / max(bytes, 1)))
        let file: any DiskFile
        do throws(SystemFailure) {
            file = try PosixDirectory(scratch).open("bare-\(label)", .create)
            let zeros = [UInt8](repeating: 0, count: bytes)
            for index in 0..<writes { try file.write(zeros, at: index * bytes) }
            try file.synchronize()
        } catch { throw CommandFailure(error, "the bare file", "give another --directory") }
        let content = randomBytes(bytes)
        var next = 0
        return LimitProbe(.sync, bytes) { () throws(CommandFailure) in
            do throws(SystemFailure) {
                try file.write(content, at: next * bytes)
                try file.synchronize()
            } catch { throw CommandFailure(error, "the bare file", "check the disk and try again") }
            next = (next + 1) % writes
        }
    }

    /// Creates a probe for opening a sealed secret of `bytes` bytes.
    static func opening(of bytes: Int) throws(CommandFailure) -> LimitProbe {
        let failure = CommandFailure(
            .failure, "there is no memory for keys", "check the limit of locked memory")
        guard let key = try? SymmetricKey.random(),
            let sealed = AuthenticatedEncryption.seal(randomBytes(bytes), key: key, associatedData: [])
        else { throw failure }
        return LimitProbe(.opening, bytes) { () throws(CommandFailure) in
            guard
                case .plaintext = AuthenticatedEncryption.open(
                    sealed, at: 0..<sealed.count, key: key, associatedData: [])
            else { throw failure }
        }
    }

    /// Creates a probe for an echo of `bytes` bytes by a process of its own. That process ends with this
    /// program.
    static func echo(of bytes: Int, _ program: FilePath) throws(CommandFailure) -> LimitProbe {
        let echo: SocketEcho
        // An answer surrounds the secret with some bytes.
        let answer = bytes + 64
        do throws(SystemFailure) {
            echo = try SocketEcho(program, [echoWord], longest: max(answer, request))
        } catch { throw CommandFailure(error, "a process to echo", "close other programs") }
        return LimitProbe(.echo, answer) { () throws(CommandFailure) in
            do throws(SystemFailure) {
                try echo.exchange(request: request, answer: answer)
            } catch { throw CommandFailure(error, "the process that echoes", "try again") }
        }
    }

    /// The argument that makes this program echo.
    static let echoWord = "--echo"
    /// The length of a typical request to the agent, in bytes.
    private static let request = 150
}
