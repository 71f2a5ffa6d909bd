import Glibc
import HookedStorage
import Synchronization
import SystemPackage
import Testing
import TokenVault

/// What happens in between: failures, cancellation, kills, and others at work on the same items.
@Suite struct MigrationInterruptionTests {
    private static let moving = TokenMigration.Options(deletesAtSource: true)

    @Test func aDestinationThatFailsMidwayStopsIt() async throws {
        let ends = try MigrationEnds(.fileToFile)
        try await ends.from().fill()
        let originals = try await ends.from().everything()
        let stores = Mutex(0)
        let failing = HookedStorage(base: ends.to()) { (call, moment, _) throws(TokenStorageError) in
            guard call == .commit, moment == .before,
                stores.withLock({
                    $0 += 1; return $0
                }) == 4
            else { return }
            throw TokenStorageError(.noSpace, operation: "store", backend: "test")
        }
        let summary = await TokenMigration(from: ends.from(), to: failing, options: Self.moving).run()
        #expect(summary.stop?.error.code == .noSpace && summary.stop?.side == .destination)
        #expect(summary.deleted == 3 && summary.copied == 3 && !summary.isComplete)
        #expect(try await ends.from().list().items.count == 4)
        let rest = await TokenMigration(from: ends.from(), to: failing, options: Self.moving).run()
        #expect(rest.isComplete && rest.deleted == 4, "\(rest)")
        #expect(areCopies(originals, try await ends.to().everything()))
    }

    @Test func anItemTheDestinationRefusesStays() async throws {
        let ends = try MigrationEnds(.memoryToMemory)
        try await ends.from().fill()
        let small = HookedStorage(base: ends.to()) { (call, moment, keys) throws(TokenStorageError) in
            if call == .commit, moment == .before, keys == ["large"] {
                throw TokenStorageError(.tooLarge, operation: "store", backend: "test")
            }
        }
        let summary = await TokenMigration(from: ends.from(), to: small, options: Self.moving).run()
        #expect(summary.stop == nil && summary.failed == 1 && summary.remaining.map(\.code) == [.tooLarge])
        #expect(try await ends.from().list().items.map(\.key) == ["large"])
    }

    @Test(arguments: [false, true])
    func aDestinationThatGivesBackSomethingElseIsNotTrusted(_ losesIt: Bool) async throws {
        let ends = try MigrationEnds(.memoryToMemory)
        try await ends.from().fill()
        var liar = HookedStorage(base: ends.to()) { (_, _, _) throws(TokenStorageError) in }
        liar.reading = { item in
            guard let item, !losesIt else { return nil }
            return TokenItem(metadata: item.metadata, secret: Secret(item.secret.unprotectedBytes() + [0]))
        }
        let summary = await TokenMigration(from: ends.from(), to: liar, options: Self.moving).run()
        #expect(summary.stop?.error.code == .corrupt && summary.stop?.side == .destination)
        #expect(summary.copied == 1 && summary.verified == 0 && summary.deleted == 0)
        #expect(try await ends.from().list().items.count == movedItems.count)
    }

    @Test func anUnknownOutcomeDeletesNothing() async throws {
        let ends = try MigrationEnds(.memoryToMemory)
        try await ends.from().fill()
        let doubtful = HookedStorage(base: ends.to()) { (call, moment, _) throws(TokenStorageError) in
            guard call == .commit, moment == .after else { return }
            throw TokenStorageError(.outcomeUnknown, operation: "store", backend: "test")
        }
        let summary = await TokenMigration(from: ends.from(), to: doubtful, options: Self.moving).run()
        #expect(summary.stop?.error.code == .outcomeUnknown && summary.deleted == 0)
        let rest = await TokenMigration(from: ends.from(), to: ends.to(), options: Self.moving).run()
        #expect(rest.isComplete && rest.alreadyThere == 1 && rest.deleted == movedItems.count, "\(rest)")
    }

    @Test func cancellationStopsBetweenItemsAndLosesNone() async throws {
        let ends = try MigrationEnds(.fileToFile)
        try await ends.from().fill()
        let (from, to) = (ends.from(), ends.to())
        let originals = try await from.everything()
        let summary = await Task {
            let stores = Mutex(0)
            let cancelling = HookedStorage(base: to) { (call, moment, _) throws(TokenStorageError) in
                guard call == .commit, moment == .after else { return }
                if stores.withLock({
                    $0 += 1; return $0
                }) == 3 {
                    withUnsafeCurrentTask { $0?.cancel() }
                }
            }
            return await TokenMigration(from: from, to: cancelling, options: Self.moving).run()
        }.value
        #expect(summary.stop?.error.code == .cancelled, "\(summary)")
        #expect(summary.copied == 3 && (2...3).contains(summary.deleted))
        let held = try await from.list().items.count
        #expect(held == movedItems.count - summary.deleted)
        let rest = await TokenMigration(from: from, to: to, options: Self.moving).run()
        #expect(rest.isComplete, "\(rest)")
        #expect(areCopies(originals, try await to.everything()))
    }

    /// Each entry: at which call of the destination another program is at work at the source.
    @Test(arguments: [HookedStorage.Call.commit, .item], [HookedStorage.Moment.before, .after])
    func aChangeAtTheSourceMeanwhileIsMovedToo(
        _ call: HookedStorage.Call, _ moment: HookedStorage.Moment
    ) async throws {
        let ends = try MigrationEnds(.fileToFile)
        let (from, to) = (ends.from(), ends.to())
        try await from.store(token: "fake-1", for: "token", label: "one")
        let times = Mutex(0)
        let busy = HookedStorage(base: to) { (now, when, _) throws(TokenStorageError) in
            guard now == call, when == moment,
                times.withLock({
                    $0 += 1; return $0
                }) <= 3
            else { return }
            try await from.store(token: "fake-\(times.withLock { $0 } + 1)", for: "token", label: "later")
        }
        let summary = await TokenMigration(from: from, to: busy, options: Self.moving).run()
        #expect(summary.isComplete && summary.deleted == 1 && summary.found == 1, "\(summary)")
        #expect(try await from.item(for: "token") == nil)
        #expect(try await to.retrieve(for: "token") == "fake-4")
        #expect(try await to.metadata(for: "token")?.label == "later")
    }

    @Test func aSourceThatNeverRestsIsLeft() async throws {
        let ends = try MigrationEnds(.memoryToMemory)
        let (from, to) = (ends.from(), ends.to())
        try await from.store(token: "fake-0", for: "token")
        let busy = HookedStorage(base: to) { (call, moment, _) throws(TokenStorageError) in
            guard call == .commit, moment == .after else { return }
            let now = try await from.metadata(for: "token")?.generation.rawValue ?? 0
            try await from.store(token: "fake-\(now)", for: "token")
        }
        let summary = await TokenMigration(from: from, to: busy, options: Self.moving).run()
        #expect(summary.stop == nil && summary.conflicts == 1 && summary.deleted == 0)
        #expect(try await from.contains(for: "token"))
    }

    @Test func whatOthersDeletedOrStoredMeanwhileIsTold() async throws {
        let ends = try MigrationEnds(.memoryToMemory)
        let (from, to) = (ends.from(), ends.to())
        try await from.store(token: "fake-gone", for: "gone")
        let deleting = HookedStorage(base: to) { (call, moment, _) throws(TokenStorageError) in
            if call == .commit, moment == .after { try await from.delete(for: "gone") }
        }
        let gone = await TokenMigration(from: from, to: deleting, options: Self.moving).run()
        #expect(gone.isComplete && gone.deletedMeanwhile == 1 && gone.deleted == 0)
        #expect(try await to.contains(for: "gone"))

        try await from.store(token: "fake-mine", for: "raced")
        let racing = HookedStorage(base: to) { (call, moment, _) throws(TokenStorageError) in
            if call == .commit, moment == .before { try await to.store(token: "fake-theirs", for: "raced") }
        }
        for conflicts in [TokenMigration.ConflictRule.replace, .skip] {
            try await to.delete(for: "raced")
            let options = TokenMigration.Options(deletesAtSource: true, conflicts: conflicts)
            let raced = await TokenMigration(from: from, to: racing, options: options).run()
            #expect(raced.conflicts == 1 && raced.deleted == 0 && raced.stop == nil)
            #expect(try await to.retrieve(for: "raced") == "fake-theirs")
            #expect(try await from.retrieve(for: "raced") == "fake-mine")
        }
    }

    /// Kills a real process before and after each of its calls; then another run finishes the move.
    @Test func aKillAnywhereIsGoneOnFrom() async throws {
        let items = 3
        var kills = 0
        for step in 0..<200 {
            let sandbox = try Sandbox()
            let source = try MigrationEnds.vault("from", sandbox)
            let destination = try MigrationEnds.vault("to", sandbox)
            let (from, to) = (source.storage(service: "s"), destination.storage(service: "s"))
            for index in 0..<items { try await from.store(token: "fake-\(index)", for: "key \(index)") }
            let mover = try Child(
                testProgram("VaultMover"), [sandbox.path.string, "s", String(step)],
                output: sandbox.path.appending("output"))
            let status = mover.wait()
            guard status == 128 + Int(SIGKILL) else {
                let output = try mover.readOutput()
                #expect(status == 0, "\(output)")
                break
            }
            kills += 1
            for index in 0..<items {
                let key = TokenKey("key \(index)")
                var held: String? = try await from.retrieve(for: key)
                if held == nil { held = try await to.retrieve(for: key) }
                #expect(held == "fake-\(index)", "step \(step)")
            }
            let rest = await TokenMigration(from: from, to: to, options: Self.moving).run()
            #expect(rest.isComplete, "step \(step): \(rest)")
            #expect(try await from.list().items.isEmpty)
            #expect(try await to.list().items.count == items)
        }
        // Listings, and for each item two reads at the destination, one at the source, and two commits.
        #expect(kills == 2 * (2 + items * 5))
    }
}
