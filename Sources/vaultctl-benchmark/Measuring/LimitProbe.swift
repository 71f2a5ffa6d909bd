import ProgramSupport
import SystemPackage
import TokenVaultCrypto
import TokenVaultPlatform

/// Times what this machine takes for the one thing that an operation cannot do without.
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

    /// Does it once.
    func measure() throws(CommandFailure) {
        let start = ContinuousClock.now
        try perform()
        latencies.record(start.duration(to: .now))
    }

    /// `pwrite` and `fdatasync` of `bytes` bytes into a file in `scratch` whose bytes were all written before.
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

    /// Opening a sealed secret of `bytes` bytes.
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

    /// An echo of `bytes` bytes by a process of its own, which ends with this.
    static func echo(of bytes: Int, _ program: FilePath) throws(CommandFailure) -> LimitProbe {
        let echo: SocketEcho
        // An answer has some bytes around the secret.
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

    /// The word that makes this program the one that echoes.
    static let echoWord = "--echo"
    /// As many bytes as the agent is asked with.
    private static let request = 150
}
