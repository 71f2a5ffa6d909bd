import Glibc
import SystemPackage
import TokenVault

/// Kills writers without warning, again and again, and looks at what they leave:
/// `CrashWriter ROUNDS [SEED]`. Two processes use one vault and tell, on a pipe, what they begin and what was
/// acknowledged; at a random moment both get SIGKILL. Then everything acknowledged must be there, what was
/// under way wholly or not at all, nothing else, and every byte must verify. The first violation ends it.
@main
struct CrashWriter {
    static func main() {
        let arguments = CommandLine.arguments
        do {
            if arguments.count == 7, arguments[1] == "write",
                let name = Int(arguments[4]), let first = Int(arguments[5]), let seed = UInt64(arguments[6])
            {
                try Writing(vault: arguments[2], state: arguments[3], name: name, seed: seed).run(from: first)
            } else if arguments.count == 2 || arguments.count == 3, let rounds = Int(arguments[1]) {
                let seed = arguments.count == 3 ? UInt64(arguments[2]) : nil
                var driver = Driver(seed: seed ?? .random(in: 0...999_999))
                print(try driver.run(rounds))
            } else {
                throw Failure("usage: CrashWriter ROUNDS [SEED]")
            }
        } catch {
            write(2, "crash-writer: \(error)\n")
            exit(1)
        }
    }
}

struct Failure: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}

/// Writes all of `text` at once, so that a reader gets whole lines even of a process that is killed.
func write(_ descriptor: CInt, _ text: String) {
    let bytes = Array(text.utf8)
    _ = Glibc.write(descriptor, bytes, bytes.count)
}

/// What opens the vault of this test: obviously no secret.
let testKey = UnlockMethod.keyFile(Secret([UInt8](repeating: 0x2a, count: 32)))
let testService = "com.example.killed"

func configuration(state: String) -> FileVaultConfiguration {
    FileVaultConfiguration(stateDirectory: FilePath(state), lockTimeout: .seconds(60))
}

/// SplitMix64: the same numbers for the same seed.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
