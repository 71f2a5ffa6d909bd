import SystemPackage
import Testing
import TokenVault
import TokenVaultCrypto
import TokenVaultPlatform

@testable import TokenVaultFile

/// Keybags that someone wrote to harm the program that opens them: with a checksum that fits.
@Suite struct HostileKeybagTests {
    /// A change of a keybag's bytes, with what opening it must answer.
    struct Attack: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let offset: Int
        let bytes: [UInt8]
        var code: TokenStorageError.Code = .corrupt
    }

    // The first slot begins at 46: identifier 4, kind 1, scope 1, created 8, passes 4, memory 8.
    static let attacks = [
        Attack(testDescription: "no slots", offset: 44, bytes: [0, 0]),
        Attack(testDescription: "65,535 slots", offset: 44, bytes: [0xff, 0xff]),
        Attack(testDescription: "17 slots", offset: 44, bytes: [17, 0]),
        Attack(testDescription: "a cost of 4 billion passes", offset: 60, bytes: [0xff, 0xff, 0xff, 0xff]),
        Attack(testDescription: "13 passes", offset: 60, bytes: [13, 0, 0, 0]),
        Attack(testDescription: "16 EiB of memory", offset: 64, bytes: [UInt8](repeating: 0xff, count: 8)),
        Attack(testDescription: "4 GiB of memory", offset: 64, bytes: [0, 0, 0, 0, 1, 0, 0, 0]),
        Attack(testDescription: "no cost at all", offset: 60, bytes: [UInt8](repeating: 0, count: 12)),
        Attack(
            testDescription: "an unknown kind of slot", offset: 50, bytes: [9], code: .unsupportedFormat),
        Attack(
            testDescription: "the first unknown kind", offset: 50, bytes: [5], code: .unsupportedFormat),
        Attack(testDescription: "a keyring's key that costs", offset: 50, bytes: [3]),
        Attack(testDescription: "a recovery key that costs", offset: 50, bytes: [4]),
        Attack(testDescription: "an unknown scope", offset: 51, bytes: [3], code: .unsupportedFormat),
        Attack(
            testDescription: "a newer version", offset: 8, bytes: [2, 0], code: .unsupportedFormat),
        Attack(testDescription: "a slot number not handed out yet", offset: 46, bytes: [0xff, 0, 0, 0]),
        Attack(testDescription: "a sealed root of 65,535 bytes", offset: 120, bytes: [0xff, 0xff]),
    ]

    @Test(arguments: attacks)
    func isRefusedWithoutWork(_ attack: Attack) throws {
        let sandbox = try Sandbox()
        _ = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: .passphrase(Secret(utf8: "not a real passphrase")),
            configuration: sandbox.configuration)
        let directory = try PosixDirectory(sandbox.vault.removingLastComponent())
        let file = try directory.open("test.vault", .readWrite)
        var copy = try file.read(VaultFormat.keybagLength, at: 0)
        #expect(throws: Never.self) { try Keybag(decoding: copy) }
        copy.replaceSubrange(attack.offset..<attack.offset + attack.bytes.count, with: attack.bytes)
        let end = copy.count - 32
        copy.replaceSubrange(end..., with: Hash.digest(copy, in: 0..<end, length: 32))
        try file.write(copy + copy, at: 0)
        let error = #expect(throws: TokenStorageError.self) {
            let vault = try BlockingFileVault.open(at: sandbox.vault, configuration: sandbox.configuration)
            try vault.unlock(with: .passphrase(Secret(utf8: "not a real passphrase")))
        }
        #expect(error?.code == attack.code)
    }

    @Test func changedWithinBoundsDoesNotAuthenticate() throws {
        let sandbox = try Sandbox()
        _ = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let directory = try PosixDirectory(sandbox.vault.removingLastComponent())
        let file = try directory.open("test.vault", .readWrite)
        let whole = try file.read(VaultFormat.keybagLength, at: 0)
        let contents = try Keybag(decoding: whole).authenticatedBytes().count + 64
        // Flips every bit behind the vault's name and the counts, each with a valid checksum.
        for offset in 16..<contents {
            var copy = whole
            copy[offset] ^= 1
            let end = copy.count - 32
            copy.replaceSubrange(end..., with: Hash.digest(copy, in: 0..<end, length: 32))
            try file.write(copy + copy, at: 0)
            let error = #expect(throws: TokenStorageError.self, "byte \(offset)") {
                let vault = try BlockingFileVault.open(
                    at: sandbox.vault, configuration: sandbox.configuration)
                try vault.unlock(with: keyFile)
            }
            // With another identifier the file is another vault, before any key is tried.
            let refusals: [TokenStorageError.Code] = [
                .corrupt, .wrongPassphrase, .unsupportedFormat, .unexpectedVault,
            ]
            #expect(
                error.map { refusals.contains($0.code) } == true,
                "byte \(offset): \(String(describing: error))")
        }
    }

    /// What sets of other devices carry after a new root comes back as it was, and no other mark is taken.
    @Test func olderRootsAreKept() throws {
        let sandbox = try Sandbox()
        _ = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let file = try PosixDirectory(sandbox.vault.removingLastComponent()).open("test.vault", .read)
        var keybag = try Keybag(decoding: try file.read(VaultFormat.keybagLength, at: 0))
        let root = [UInt8](repeating: 7, count: Keybag.wrappedRootLength)
        for passcode in [[], root] {
            keybag.sets[1].olderRoots = Keybag.OlderRoots(all: root, holder: root, passcode: passcode)
            #expect(try Keybag(decoding: try #require(keybag.encoded())) == keybag)
        }
        keybag.sets[0].olderRoots = keybag.sets[1].olderRoots
        #expect(keybag.encoded() == nil)
        let bytes = try #require(keybag.uncheckedEncoding())
        #expect(throws: FormatError.outOfBounds) { try Keybag(decoding: bytes) }
        // The largest number of devices and slots, each with all its parts, fits into a copy.
        keybag.sets[0].olderRoots = nil
        var full = keybag
        for number in 2..<Keybag.maximumSets {
            var set = full.sets[1]
            // Differs from the second set's device, whatever its name is.
            set.device[0] &+= UInt8(number)
            set.keys.append(set.keys[0])
            full.sets.append(set)
        }
        while full.slots.count < Keybag.maximumSlots {
            var slot = full.slots[0]
            slot.identifier = full.nextSlot
            full.nextSlot += 1
            full.slots.append(slot)
        }
        #expect(try Keybag(decoding: try #require(full.encoded())) == full)
    }

    @Test func paddingNeverLeaksMoreThanPadme() {
        // Values of the function in the paper, rounded up to a multiple of eight.
        #expect(
            [0, 1, 8, 9, 17, 33, 100, 1_000, 1_048_576].map(VaultFormat.padded) == [
                8, 8, 8, 16, 24, 40, 104, 1_024, 1_048_576,
            ])
        for length in stride(from: 1, to: 200_000, by: 37) {
            let padded = VaultFormat.padded(length)
            #expect(padded >= length && padded.isMultiple(of: 8))
            #expect(Double(padded) <= Double(length) * 1.12 + 8)
        }
    }
}
