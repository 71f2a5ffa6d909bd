import Glibc
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

/// A path is bound to its vault: another one there is refused until a person settles it.
@Suite struct IdentityTests {
    private let sandbox: Sandbox
    private var directory: FilePath { sandbox.vault.removingLastComponent() }

    init() throws {
        sandbox = try Sandbox()
        try sandbox.made(["a": "of the first"]).close()
    }

    /// A second vault that the same key file opens.
    private func makeSecond(isKnown: Bool = true) throws {
        var configuration = sandbox.configuration
        if !isKnown { configuration.stateDirectory = sandbox.path.appending("elsewhere") }
        let second = try BlockingFileVault.create(
            at: sandbox.path(of: "second.vault"), unlockMethod: keyFile, configuration: configuration)
        try second.storage(service: "s").store(token: "of the second", for: "a", policy: .whenUnlocked)
        second.close()
    }

    private func swap() throws {
        let directory = try PosixDirectory(directory)
        try directory.rename("test.vault", to: "kept", replacing: false)
        try directory.rename("second.vault", to: "test.vault", replacing: false)
        try directory.rename("kept", to: "second.vault", replacing: false)
    }

    @Test func vaultsThatWereSwappedAreRefused() throws {
        try makeSecond()
        try swap()
        for name in ["test.vault", "second.vault"] {
            let refused = failure { _ = try sandbox.opened(name) }
            #expect(refused?.code == .unexpectedVault, "\(name)")
            #expect(refused?.underlying?.contains(name) == true)
            #expect(failure { _ = try sandbox.opened(name, readingCopies: true) }?.code == .unexpectedVault)
        }
        #expect(
            failure {
                try BlockingFileVault.destroy(at: sandbox.vault, configuration: sandbox.configuration)
            }?.code
                == .unexpectedVault)
        try swap()
        #expect(try values(in: try sandbox.opened()) == ["a": "of the first"])
        #expect(try values(in: try sandbox.opened("second.vault")) == ["a": "of the second"])
    }

    /// A merge does not settle which vault is at a path.
    @Test(arguments: [false, true]) func nothingIsMergedIntoAnotherVault(isRehearsal: Bool) throws {
        try makeSecond()
        let second = try sandbox.opened("second.vault")
        try PosixCopy(of: sandbox.path(of: "second.vault"), state: sandbox.path.appending("state"))
            .write(to: "older.vault")
        try second.storage(service: "s").store(token: "newer", for: "b", policy: .whenUnlocked)
        second.close()
        try swap()
        let (there, older) = (try sandbox.copy(nil), try sandbox.copy("older.vault"))
        #expect(failure { _ = try there.merge(older, isRehearsal: isRehearsal) }?.code == .unexpectedVault)
        try swap()
        #expect(try values(in: sandbox.opened("second.vault")).count == 2)
    }

    /// The place of a vault whose file is missing takes no other vault.
    @Test func nothingIsSalvagedIntoThePlaceOfAnotherVault() throws {
        try makeSecond()
        try PosixDirectory(directory).remove("test.vault")
        let second = try sandbox.copy("second.vault")
        #expect(failure { _ = try second.salvage(to: sandbox.vault) }?.code == .unexpectedVault)
        #expect(try second.salvage(to: sandbox.path(of: "out.vault")).isComplete)
    }

    /// A link took the place of the vault's directory and leads to another vault of the same name.
    @Test func aLinkedDirectoryIsRefusedUntilItIsSettled() throws {
        let (home, evil) = (directory, sandbox.path.appending("evil"))
        var configuration = sandbox.configuration
        configuration.stateDirectory = sandbox.path.appending("elsewhere")
        let second = try BlockingFileVault.create(
            at: evil.appending("test.vault"), unlockMethod: keyFile, configuration: configuration)
        try second.storage(service: "s").store(token: "of the second", for: "a", policy: .whenUnlocked)
        second.close()
        let kept = sandbox.path.appending("kept")
        #expect(rename(home.string, kept.string) == 0 && symlink(evil.string, home.string) == 0)
        let refused = failure { _ = try sandbox.opened() }
        #expect(
            refused?.code == .unexpectedVault && refused?.underlying?.contains("test.vault") == true,
            "\(refused as Any)")
        _ = try sandbox.copy(nil).adopt()
        #expect(try values(in: try sandbox.opened()) == ["a": "of the second"])
        // A link to the same vault leads to the vault.
        #expect(unlink(home.string) == 0 && rename(kept.string, evil.appending("moved").string) == 0)
        #expect(symlink(evil.appending("moved").string, home.string) == 0)
        #expect(try values(in: try sandbox.opened()) == ["a": "of the first"])
    }

    @Test func aVaultThatThisDeviceNeverSawIsRefusedUntilItIsAdopted() throws {
        try makeSecond(isKnown: false)
        try swap()
        #expect(failure { _ = try sandbox.opened() }?.code == .unexpectedVault)
        _ = try sandbox.copy(nil).adopt()
        #expect(try values(in: try sandbox.opened()) == ["a": "of the second"])
        // The first vault is expected nowhere. Opening it makes it known again.
        #expect(try values(in: try sandbox.opened("second.vault")) == ["a": "of the first"])
        try swap()
        #expect(failure { _ = try sandbox.opened() }?.code == .unexpectedVault)
        #expect(failure { _ = try sandbox.opened("second.vault") }?.code == .unexpectedVault)
    }

    @Test func forgettingTheExpectedVaultSettlesItToo() throws {
        try makeSecond()
        #expect(
            failure { try BlockingFileVault.forget(at: sandbox.vault, configuration: sandbox.configuration) }?
                .code
                == .alreadyExists)
        let directory = try PosixDirectory(directory)
        try directory.rename("second.vault", to: "test.vault", replacing: true)
        #expect(failure { _ = try sandbox.opened() }?.code == .unexpectedVault)
        #expect(BlockingFileVault.remembersVault(at: sandbox.vault, configuration: sandbox.configuration))
        try BlockingFileVault.forget(at: sandbox.vault, configuration: sandbox.configuration)
        #expect(try values(in: try sandbox.opened()) == ["a": "of the second"])
        #expect(
            failure { try BlockingFileVault.forget(at: sandbox.vault, configuration: sandbox.configuration) }?
                .code
                == .alreadyExists)
    }

    /// As by a rename of a directory above, a bind mount or a link: the path leads to another vault.
    @Test func aDirectoryThatTookThePlaceOfAnotherIsNoticed() throws {
        let root = try PosixDirectory(sandbox.path)
        try makeSecond()
        try PosixDirectory.makeAll(sandbox.path.appending("others"))
        let others = try PosixDirectory(sandbox.path.appending("others"))
        let bytes = try sandbox.bytes(of: "second.vault")
        try others.open("test.vault", .create).write(bytes, at: 0)
        try root.rename("vaults", to: "away", replacing: false)
        try root.rename("others", to: "vaults", replacing: false)
        #expect(failure { _ = try sandbox.opened() }?.code == .unexpectedVault)
    }

    @Test func aCopyIsNotRestoredOverWhatIsExpected() throws {
        try makeSecond()
        try PosixDirectory(directory).remove("test.vault")
        let copy = try sandbox.copy("second.vault")
        #expect(failure { _ = try copy.restore(to: sandbox.vault) }?.code == .unexpectedVault)
        #expect(try !SmallFile.exists(sandbox.vault))
    }

    /// A device that remembers nothing expects nothing.
    @Test func anotherStateDirectoryExpectsNothing() throws {
        try makeSecond()
        try swap()
        var configuration = sandbox.configuration
        configuration.stateDirectory = sandbox.path.appending("fresh")
        let vault = try BlockingFileVault.open(at: sandbox.vault, configuration: configuration)
        try vault.unlock(with: keyFile)
        #expect(try values(in: vault) == ["a": "of the second"])
    }

    /// What has the first one open hears of it as well.
    @Test func aVaultThatIsOpenIsNotMistakenForTheOther() throws {
        let vault = try sandbox.opened()
        try makeSecond()
        try swap()
        for change: () throws -> Void in [
            { try vault.storage(service: "s").store(token: "for the first", for: "b") },
            { try vault.storage(service: "s").delete(for: "a") },
        ] {
            #expect(failure(change)?.code == .unexpectedVault)
        }
        try swap()
        try vault.storage(service: "s").store(token: "for the first", for: "b")
        #expect(try values(in: vault).count == 2)
    }

    @Test func whereOthersMayPutAnotherVaultNoneIsOpened() throws {
        func refusal() -> TokenStorageError? { failure { _ = try sandbox.opened() } }
        for (mode, isRefused) in [
            (0o777, true), (0o702, true), (0o1777, false), (0o770, false), (0o755, false),
        ] {
            #expect(chmod(directory.string, mode_t(mode)) == 0)
            #expect(refusal()?.code == (isRefused ? .insecurePermissions : nil), "\(String(mode, radix: 8))")
            let made = failure {
                try BlockingFileVault.create(
                    at: sandbox.path(of: "new.vault"), unlockMethod: keyFile,
                    configuration: sandbox.configuration
                ).close()
                try BlockingFileVault.destroy(
                    at: sandbox.path(of: "new.vault"), configuration: sandbox.configuration)
            }
            #expect(made?.code == (isRefused ? .insecurePermissions : nil), "\(String(mode, radix: 8))")
        }
        #expect(chmod(directory.string, 0o770) == 0)
        let vault = try sandbox.opened()
        #expect(try vault.status().notes.contains { $0.contains("the group of the vault's directory") })
        #expect(chmod(directory.string, 0o700) == 0)
        guard geteuid() == 0 else { return }
        #expect(chown(directory.string, 65_534, 0) == 0)
        #expect(refusal()?.code == .insecurePermissions)
    }
}
