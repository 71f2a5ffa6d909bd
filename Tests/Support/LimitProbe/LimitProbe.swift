import Glibc
import SystemPackage
import TokenVault
import TokenVaultPlatform

/// What a process with limits of its own meets.
///
/// `LimitProbe descriptors COPY STATE` unlocks a copy of a vault with ever more descriptors left. Then it
/// leaves none while it looks where the vault is, and none while it looks at that place. It prints the
/// outcome of each. `LimitProbe memory VAULT STATE OUT` reads, salvages and writes to a vault. It prints the
/// most memory that it took, in KiB.
@main
struct LimitProbe {
    static func main() {
        let arguments = CommandLine.arguments
        do {
            switch (arguments.dropFirst().first, arguments.count) {
            case ("descriptors", 4): try descriptors(arguments[2], arguments[3])
            case ("memory", 5): try memory(arguments[2], arguments[3], out: arguments[4])
            default: fail("usage: see the source")
            }
        } catch {
            fail("\(error)")
        }
    }

    static func fail(_ reason: String) -> Never {
        print("failed \(reason)")
        exit(1)
    }

    static let method = UnlockMethod.keyFile(Secret(utf8: "not a real key: 0123456789abcdef0123456789abcdef"))

    static func configuration(_ state: String) -> FileVaultConfiguration {
        FileVaultConfiguration(stateDirectory: FilePath(state))
    }

    static func descriptors(_ copy: String, _ state: String) throws {
        let configuration = configuration(state)
        let first = dup(0)
        guard first >= 0 else { fail("no descriptor") }
        close(first)
        for left in 0..<12 {
            limit(to: Int(first) + left)
            tell { () throws(TokenStorageError) in
                let vault = try BlockingFileVault.open(at: FilePath(copy), configuration: configuration)
                try vault.unlock(with: method)
            }
        }
        limit(to: 1_024)
        let path = FilePath(copy)
        let directory = try PosixDirectory(path.removingLastComponent())
        for isBefore in [true, false] {
            let location = VaultLocation(
                directory: LimitingDirectory(directory, suffix: "", before: { limit(to: 1_024) }),
                name: path.lastComponent?.string ?? "",
                state: LimitingDirectory(
                    try PosixDirectory(FilePath(state)), suffix: ".path",
                    before: { if isBefore { limit(to: 3) } }, after: { limit(to: 3) }),
                path: path, absolutePath: directory.absolutePath?.appending(path.lastComponent?.string ?? ""))
            tell { () throws(TokenStorageError) in
                let vault = try BlockingFileVault.open(at: location, configuration: configuration)
                try vault.unlock(with: method)
            }
            limit(to: 1_024)
        }
    }

    /// Lets this process open no descriptor of this number or above.
    static func limit(to number: Int) {
        var limit = rlimit(rlim_cur: rlim_t(number), rlim_max: 1_024)
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { fail("no limit") }
    }

    static func tell(_ body: () throws(TokenStorageError) -> Void) {
        do throws(TokenStorageError) {
            try body()
            print("unlocked")
        } catch {
            print(error.code)
        }
    }

    static func memory(_ path: String, _ state: String, out: String) throws {
        let copy = try VaultCopy.open(at: FilePath(path), configuration: configuration(state))
        try copy.unlock(with: method)
        guard try copy.salvage(to: FilePath(out)).isComplete else { fail("something is lost") }
        copy.close()
        let vault = try BlockingFileVault.open(at: FilePath(path), configuration: configuration(state))
        try vault.unlock(with: method)
        guard try vault.verify().isClean else { fail("damaged") }
        try vault.storage(service: "s").store(token: "fake", for: "probe")
        vault.close()
        let status = try SmallFile.read("/proc/self/status", limit: 1 << 16).bytes
        let lines = String(decoding: status, as: UTF8.self).split(separator: "\n")
        guard let peak = lines.first(where: { $0.hasPrefix("VmHWM:") }) else { fail("no peak") }
        print(peak.split(whereSeparator: { " \t".contains($0) })[1])
    }
}
