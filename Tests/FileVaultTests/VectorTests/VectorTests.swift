import Synchronization
import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

@testable import TokenVaultFile

/// The published vectors: the library finds in them what their manifest says.
@Suite struct VectorTests {
    @Test func everyFileHasAnEntryAndEveryEntryAFile() throws {
        let vectors = try VectorFiles.manifest()
        let names = vectors.map(\.name)
        #expect(Set(names).count == names.count)
        let states = vectors.flatMap(\.openings).compactMap(\.state)
        for folder in ["vaults", "exports"] {
            let entered = Set((vectors.map(\.file) + states).filter { $0.hasPrefix("\(folder)/") })
            #expect(entered == Set(try VectorFiles.names(in: folder).map { "\(folder)/\($0)" }))
        }
        #expect(Set(vectors.filter { !$0.isExport }.map(\.file)).count >= 60)
        #expect(vectors.count { $0.by == "vaultctl" } >= 10)
        #expect(vectors.allSatisfy { !$0.openings.isEmpty && !$0.fields.isEmpty })
    }

    @Test(arguments: VectorFiles.vectors.filter { !$0.isExport })
    func vaultHasWhatTheManifestSays(_ vector: Vector) throws {
        let bytes = try VectorFiles.bytes(of: vector)
        for (number, opening) in vector.openings.enumerated() {
            let sandbox = try Sandbox()
            let configuration = try put(bytes, opening, in: sandbox)
            let place: Comment = "\(vector.name), opening \(number)"
            if opening.code == nil {
                let vault = try BlockingFileVault.open(at: sandbox.vault, configuration: configuration)
                try vault.unlock(with: try opening.method(), repairing: false)
                try check(vault, opening, place)
            } else {
                try checkRefusal(at: sandbox.vault, configuration, opening, place)
            }
        }
    }

    @Test(arguments: VectorFiles.vectors.filter(\.isExport))
    func exportHasWhatTheManifestSays(_ vector: Vector) throws {
        let sandbox = try Sandbox()
        try PosixDirectory.makeAll(sandbox.path)
        let file = try PosixDirectory(sandbox.path).open("export", .create)
        try file.write(try VectorFiles.bytes(of: vector), at: 0)
        for (number, opening) in vector.openings.enumerated() {
            let place: Comment = "\(vector.name), opening \(number)"
            let passphrase = Secret(utf8: try #require(opening.passphrase))
            var found: [TokenItem] = []
            do {
                try ExportReader(file, passphrase: passphrase).readItems { found.append($0) }
                #expect(opening.code == nil, place)
                #expect(found == (try #require(opening.items).map { try $0.expected() }), place)
            } catch let error as TokenStorageError {
                #expect(error.code.rawValue == opening.code, place)
            }
        }
    }

    /// Puts a copy of the vault and of the state directory into the sandbox.
    private func put(
        _ bytes: [UInt8], _ opening: Vector.Opening, in sandbox: Sandbox
    ) throws -> FileVaultConfiguration {
        let folder = sandbox.vault.removingLastComponent()
        try PosixDirectory.makeAll(folder)
        try PosixDirectory(folder).open("test.vault", .create).write(bytes, at: 0)
        var configuration = sandbox.configuration
        configuration.stateDirectory = nil
        if let state = opening.state {
            let directory = sandbox.path.appending("state")
            try PosixDirectory.makeAll(directory)
            for name in try VectorFiles.names(in: state) {
                let contents = try VectorFiles.contents("\(state)/\(name)")
                try PosixDirectory(directory).open(name, .create).write(contents, at: 0)
            }
            configuration.stateDirectory = directory
        }
        return configuration
    }

    /// It fails when the manifest says, with the code and at the place that it says.
    private func checkRefusal(
        at path: FilePath, _ configuration: FileVaultConfiguration, _ opening: Vector.Opening,
        _ place: Comment
    ) throws {
        var stage = "open"
        let error = #expect(throws: TokenStorageError.self, place) {
            let vault = try BlockingFileVault.open(at: path, configuration: configuration)
            stage = "unlock"
            try vault.unlock(with: try opening.method(), repairing: false)
        }
        #expect(stage == opening.at, place)
        #expect(error?.code.rawValue == opening.code, place)
        if let offset = opening.offset {
            #expect(
                error?.underlying?.hasSuffix("at byte \(offset)") == true,
                "\(place): \(error?.underlying ?? "")")
        }
    }

    /// Everything that a vault that was opened tells is as the manifest says.
    private func check(_ vault: BlockingFileVault, _ opening: Vector.Opening, _ place: Comment) throws {
        let session = try vault.session()
        let log = session.log.state.withLock { ($0.epoch.number, $0.sequence, $0.keybag.generation) }
        #expect(vault.identifier == opening.vault, place)
        #expect(log.0 == opening.epoch, place)
        #expect(log.1 == (opening.sequence ?? 0), place)
        #expect(log.2 == opening.keybagGeneration, place)
        #expect(try vault.status().unlockedBy?.id == opening.slot, place)
        let report = try vault.verify()
        #expect(report.problems.map(\.offset) == opening.problems, place)
        // A remainder where a value was erased is noted too, but is not a torn commit.
        let torn = report.notes.filter { !$0.contains("a deleted value") }
        #expect(torn.isEmpty == (opening.isTorn != true), place)

        if opening.lockedAgain == true { vault.lock() }
        let expected = try #require(opening.items).map { try $0.expected() }
        for item in expected {
            let found = try vault.storage(service: item.metadata.service).item(for: item.metadata.key)
            #expect(found == item, place)
        }
        let refused = try #require(opening.unreadable)
        for one in refused { try check(one, in: session, place) }
        // The vault has no other item. A list with a damaged item is refused as a whole.
        guard refused.allSatisfy({ $0.code != "corrupt" }) else { return }
        let listing = try vault.listAllServices()
        #expect(listing.items == expected.map(\.metadata), place)
        #expect(listing.hidden == refused.count, place)
        for (code, count) in listing.hiddenReasons {
            #expect(refused.count { $0.code == code.rawValue } == count, place)
        }
    }

    private func check(_ refusal: Vector.Refusal, in session: VaultSession, _ place: Comment) throws {
        let item =
            if let number = refusal.number {
                ItemIdentifier(high: number[0], low: number[1])
            } else {
                try session.log.codec.item(
                    service: try #require(refusal.service), key: TokenKey(try #require(refusal.key)))
            }
        let entry = try #require(try session.log.entry(for: item), place).0
        #expect(entry.policy == refusal.policy.number, place)
        #expect(entry.generation == refusal.generation, place)
        let error = #expect(throws: TokenStorageError.self, place) { _ = try session.item(item) }
        #expect(error?.code.rawValue == refusal.code, place)
        if let offset = refusal.offset {
            #expect(error?.underlying?.hasSuffix("at byte \(offset)") == true, place)
        }
    }
}
