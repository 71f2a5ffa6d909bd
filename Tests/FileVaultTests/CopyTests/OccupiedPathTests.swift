import Glibc
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

/// A vault's path with something else there, or nothing any more.
@Suite(.timeLimit(.minutes(20))) struct OccupiedPathTests {
    private let sandbox: Sandbox
    private var directory: FilePath { sandbox.vault.removingLastComponent() }

    init() throws { sandbox = try Sandbox() }

    /// All that may be called with the path of a vault.
    private func calls(on path: FilePath) throws -> [(name: String, call: () throws -> Void)] {
        let configuration = sandbox.configuration
        let backup = try sandbox.copy("backup")
        return [
            ("open", { _ = try BlockingFileVault.open(at: path, configuration: configuration) }),
            (
                "open for reading",
                {
                    var configuration = configuration
                    configuration.isReadOnly = true
                    _ = try BlockingFileVault.open(at: path, configuration: configuration)
                }
            ),
            ("open as a copy", { _ = try VaultCopy.open(at: path, configuration: configuration) }),
            ("restore", { _ = try backup.restore(to: path) }),
            ("destroy", { try BlockingFileVault.destroy(at: path, configuration: configuration) }),
        ]
    }

    @Test func whatIsNoFileIsNoVaultAndNothingHangs() throws {
        try sandbox.made().close()
        try sandbox.keepCopy(as: "backup")
        try PosixDirectory.makeAll(directory.appending("directory"))
        #expect(mkfifo(directory.appending("pipe").string, 0o600) == 0)
        #expect(symlink("test.vault", directory.appending("link").string) == 0)
        let socket = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let place = directory.appending("socket").string
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: place.utf8) }
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        #expect(bound == 0)
        let pipe = "a pipe, a socket or a device"
        for (path, what) in [
            (directory.appending("directory"), "a directory"), (directory.appending("pipe"), pipe),
            (directory.appending("socket"), pipe), ("/dev/null", pipe), ("/dev/zero", pipe),
            (directory.appending("link"), "a symbolic link"),
        ] as [(FilePath, String)] {
            for (name, call) in try calls(on: path) {
                let failed = failure(call)
                #expect(
                    failed?.code == .notAVault && failed?.underlying == what, "\(name) \(path): \(failed)")
            }
            let failed = failure {
                _ = try BlockingFileVault.create(
                    at: path, unlockMethod: keyFile, configuration: sandbox.configuration)
            }
            #expect(failed?.code == .alreadyExists, "\(path): \(failed)")
        }
    }

    /// As where one file is mounted into a container: no other can take its place.
    @Test func aFileThatIsMountedByItselfIsUsedAndNotReplaced() throws {
        try sandbox.made().close()
        try sandbox.keepCopy(as: "backup")
        let place = VaultLocation(
            directory: FixedDirectory(base: try PosixDirectory(directory), refusal: .resourceBusy),
            name: "test.vault", state: try PosixDirectory(sandbox.path.appending("state")),
            path: sandbox.vault)
        let vault = try BlockingFileVault.open(at: place, configuration: sandbox.configuration)
        try vault.unlock(with: keyFile)
        try vault.storage(service: "s").store(token: "second", for: "a")
        try vault.storage(service: "s").delete(for: "b")
        #expect(try values(in: vault) == ["a": "second"])
        let advice = "mount the vault's directory instead of the file"
        for call: () throws -> Void in [
            { _ = try vault.compact() }, { _ = try sandbox.copy("backup").restore(to: place) },
        ] {
            let failed = failure(call)
            #expect(failed?.code == .ioFailure && failed?.advice?.hasPrefix(advice) == true, "\(failed)")
        }
        #expect(try vault.status().notes.contains { $0.contains("is a mount point") })
        #expect(try values(in: vault) == ["a": "second"] && vault.verify().isClean)
        #expect(try sandbox.names == ["test.vault", "backup"])
    }

    /// What this device knows to have been there is not absent: nothing is to be made in its place.
    @Test func aVaultThatIsGoneIsToldFromNone() throws {
        let vault = try sandbox.made()
        try sandbox.keepCopy(as: "backup")
        let other = sandbox.path(of: "other.vault")
        for path in [sandbox.vault, other] {
            if path == sandbox.vault { try PosixDirectory(directory).remove("test.vault") }
            for (name, call) in try calls(on: path) where name != "restore" {
                let failed = failure(call)
                #expect(failed?.code == .unavailable, "\(name): \(failed)")
                let isGone = failed?.reason == .vaultMissing(path: sandbox.vault.string)
                #expect(isGone == (path == sandbox.vault), "\(name): \(failed)")
                #expect(failed?.advice?.contains("vaultctl restore") == isGone, "\(name): \(failed)")
            }
        }
        let late = failure { try vault.storage(service: "s").store(token: "x", for: "y") }
        #expect(late?.code == .unavailable && late?.advice?.contains("vaultctl restore") == true)
        // The directory is gone as well, as when a disk is not mounted.
        try PosixDirectory(directory).rename("backup", to: "test.vault", replacing: false)
        let away = sandbox.path.appending("away")
        #expect(rename(directory.string, away.string) == 0)
        let failed = failure {
            _ = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
        }
        #expect(failed?.reason == .vaultMissing(path: sandbox.vault.string))
        let another = failure {
            _ = try BlockingFileVault.open(at: other, configuration: sandbox.configuration)
        }
        #expect(
            another?.code == .unavailable
                && another?.underlying == "no such directory: \(other.removingLastComponent().string)")
    }

    /// No other vault is made in its place before it is forgotten, with all that this device keeps for it.
    @Test func aVaultThatIsGoneIsForgottenOnPurpose() throws {
        let configuration = sandbox.configuration
        func make() throws -> BlockingFileVault {
            try BlockingFileVault.create(
                at: sandbox.vault, unlockMethod: keyFile, configuration: configuration)
        }
        func forget() throws { try BlockingFileVault.forget(at: sandbox.vault, configuration: configuration) }
        #expect(failure(forget)?.code == .unavailable)
        let vault = try sandbox.made()
        #expect(failure(forget)?.code == .alreadyExists)
        let state = try PosixDirectory(sandbox.path.appending("state"))
        try vault.storage(service: "s").store(token: "kept", for: "c")
        vault.close()
        try PosixDirectory(directory).remove("test.vault")
        let kept = try Set(state.names())
        let refused = failure { _ = try make() }
        #expect(
            refused?.code == .unavailable
                && refused?.underlying?.hasPrefix("the vault file is gone: ") == true, "\(refused)")
        #expect(try Set(state.names()) == kept)
        var readOnly = configuration
        readOnly.isReadOnly = true
        #expect(
            failure { try BlockingFileVault.forget(at: sandbox.vault, configuration: readOnly) }?.code
                == .readOnly)
        try forget()
        #expect(try state.names() == [])
        try make().close()
        #expect(try values(in: try sandbox.opened()) == [:])
    }

    @Test func aNameThatIsNoTextIsRefused() throws {
        let path = FilePath(bytes: sandbox.path.bytes + Array("/test".utf8) + [0xff])
        let failed = failure {
            _ = try BlockingFileVault.create(
                at: path, unlockMethod: keyFile, configuration: sandbox.configuration)
        }
        #expect(failed?.code == .invalidArgument)
    }
}
