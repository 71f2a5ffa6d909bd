import Testing
import TokenVault

/// What is moved, what is left, and what is said of both.
@Suite struct MigrationTests {
    @Test(arguments: MigrationRoute.allCases)
    func movesEverythingAndDeletesOnlyWhenAsked(_ route: MigrationRoute) async throws {
        let ends = try MigrationEnds(route)
        try await ends.from().fill()
        let originals = try await ends.from().everything()
        try #require(originals.count == movedItems.count)

        var steps: [MigrationProgress] = []
        let copied = await TokenMigration(from: ends.from(), to: ends.to()).run { steps.append($0) }
        #expect(copied.isComplete, "\(copied)")
        #expect(copied.copied == 7 && copied.verified == 7 && copied.found == 7 && copied.deleted == 0)
        #expect(steps.map(\.done) == Array(1...7) && steps.allSatisfy { $0.total == 7 })
        #expect(areCopies(originals, try await ends.to().everything()))
        #expect(try await ends.from().everything() == originals)

        // A second migration with deletion stores nothing again.
        let copies = try await ends.to().everything()
        let options = TokenMigration.Options(deletesAtSource: true)
        let moved = await TokenMigration(from: ends.from(), to: ends.to(), options: options).run()
        #expect(moved.isComplete, "\(moved)")
        #expect(moved.copied == 0 && moved.alreadyThere == 7 && moved.verified == 7 && moved.deleted == 7)
        #expect(try await ends.from().list().items.isEmpty)
        #expect(try await ends.to().everything() == copies)

        // A third migration has nothing to do.
        let idle = await TokenMigration(from: ends.from(), to: ends.to(), options: options).run()
        #expect(idle.isComplete && idle.found == 0)
    }

    @Test(arguments: MigrationRoute.allCases)
    func movesAllServicesOrThoseChosen(_ route: MigrationRoute) async throws {
        let ends = try MigrationEnds(route)
        for service in ["a", "b", "é", "e\u{301}"] {
            try await ends.from(service).store(token: "fake-\(service)", for: "token")
            try await ends.from(service).store(token: "fake-other", for: "other")
        }
        let chosen = TokenMigration(
            from: ends.source, to: ends.destination, services: ["b"],
            options: .init(deletesAtSource: true, keys: ["token", "none"]))
        let first = await chosen.run()
        #expect(first.isComplete && first.deleted == 1 && first.absent == 1, "\(first)")
        #expect(try await ends.destination.services().services == ["b"])
        #expect(try await ends.from("b").list().items.map(\.key) == ["other"])

        let rest = await TokenMigration(from: ends.source, to: ends.destination).run()
        #expect(rest.isComplete && rest.copied == 7, "\(rest)")
        let services = try await ends.destination.services().services
        #expect(services.map { Array($0.utf8) } == ["a", "b", "e\u{301}", "é"].map { Array($0.utf8) })
        #expect(try await ends.to("e\u{301}").retrieve(for: "token") == "fake-e\u{301}")
    }

    @Test func aConflictIsFailedSkippedOrReplaced() async throws {
        let ends = try MigrationEnds(.memoryToFile)
        for key in ["a", "b", "c"] {
            try await ends.from().store(token: "fake-new-\(key)", for: TokenKey(key))
        }
        try await ends.to().store(token: "fake-old-b", for: "b", label: "mine", attributes: ["k": "v"])
        // The same secret under another policy is not a copy.
        try await ends.to().store(token: "fake-new-c", for: "c", policy: .afterFirstUnlock)

        let failed = await TokenMigration(
            from: ends.from(), to: ends.to(), options: .init(deletesAtSource: true)
        ).run()
        #expect(failed.stop?.error.code == .conflict && failed.stop?.side == .destination)
        #expect(failed.conflicts == 2 && failed.remaining.map(\.key) == ["b", "c"] && failed.copied == 0)
        #expect(try await ends.to().list().items.count == 2)

        let skipped = await TokenMigration(
            from: ends.from(), to: ends.to(), options: .init(deletesAtSource: true, conflicts: .skip)
        ).run()
        #expect(skipped.stop == nil && !skipped.isComplete && skipped.conflicts == 2)
        #expect(skipped.copied == 1 && skipped.deleted == 1)
        #expect(try await ends.to().retrieve(for: "b") == "fake-old-b")
        #expect(try await ends.from().list().items.map(\.key) == ["b", "c"])

        let replaced = await TokenMigration(
            from: ends.from(), to: ends.to(), options: .init(deletesAtSource: true, conflicts: .replace)
        ).run()
        #expect(replaced.isComplete && replaced.copied == 2 && replaced.deleted == 2, "\(replaced)")
        let b = try #require(try await ends.to().item(for: "b"))
        #expect(b.secret == Secret(utf8: "fake-new-b"))
        #expect(b.metadata.label == nil && b.metadata.attributes.isEmpty)
        #expect(try await ends.to().metadata(for: "c")?.policy == .whenUnlockedThisDeviceOnly)
    }

    @Test func aPolicyIsNeverWeakenedUnlessAsked() async throws {
        let ends = try MigrationEnds(.memoryToMemory)
        // A device that the vault does not know keeps portable policies only.
        (ends.destination as? InMemoryVault)?.setDevice(.another)
        for policy in AccessPolicy.allCases {
            try await ends.from().store(
                token: "fake-\(policy.rawValue)", for: TokenKey(policy.rawValue), policy: policy)
        }
        let options = TokenMigration.Options(deletesAtSource: true)
        let first = await TokenMigration(from: ends.from(), to: ends.to(), options: options).run()
        #expect(first.stop == nil && !first.isComplete)
        #expect(first.copied == 2 && first.deleted == 2 && first.unsupportedPolicies == 3)
        let left = try await ends.from().list().items
        #expect(left.count == 3 && left.allSatisfy { $0.policy.isThisDeviceOnly })

        let mapped = await TokenMigration(
            from: ends.from(), to: ends.to(),
            options: .init(
                deletesAtSource: true,
                policies: [
                    .whenUnlockedThisDeviceOnly: .whenUnlocked,
                    .afterFirstUnlockThisDeviceOnly: .afterFirstUnlock,
                ])
        ).run()
        #expect(mapped.copied == 2 && mapped.deleted == 2)
        #expect(mapped.remaining.map(\.code) == [.unsupportedPolicy])
        #expect(try await ends.from().list().items.map(\.policy) == [.whenPasscodeSetThisDeviceOnly])
        #expect(
            try await ends.to().metadata(for: "after-first-unlock-this-device-only")?.policy
                == .afterFirstUnlock)
    }

    @Test(arguments: [MigrationRoute.fileToMemory, .memoryToMemory])
    func lockedItemsAreCountedAndStay(_ route: MigrationRoute) async throws {
        let ends = try MigrationEnds(route)
        try await ends.from().store(token: "fake-dark", for: "dark")
        try await ends.from().store(token: "fake-light", for: "light", policy: .afterFirstUnlock)
        try await ends.from("all dark").store(token: "fake-dark", for: "dark")
        if let vault = ends.source as? FileVault { vault.lock() }
        (ends.source as? InMemoryVault)?.setLockState(.afterFirstUnlock)
        let options = TokenMigration.Options(deletesAtSource: true)
        let summary = await TokenMigration(from: ends.source, to: ends.destination, options: options).run()
        // A service with only dark items is not listed, but its items are counted.
        #expect(summary.stop == nil && summary.hidden == 2 && summary.unreadable == 2)
        #expect(!summary.isComplete && summary.deleted == 1)
        let chosen = await TokenMigration(
            from: ends.from(), to: ends.to(), options: .init(keys: ["dark", "light"])
        ).run()
        #expect(chosen.remaining.map(\.code) == [.locked] && chosen.absent == 1, "\(chosen)")
        if let vault = ends.source as? FileVault { try await vault.unlock(with: keyFile) }
        (ends.source as? InMemoryVault)?.setLockState(.unlocked)
        #expect(try await ends.from("all dark").retrieve(for: "dark") == "fake-dark")

        (ends.destination as? InMemoryVault)?.setLockState(.locked)
        let shut = await TokenMigration(from: ends.from(), to: ends.to(), options: options).run()
        #expect(shut.stop?.error.code == .locked && shut.stop?.side == .destination)
        #expect(try await ends.from().retrieve(for: "dark") == "fake-dark")
    }

    @Test(arguments: [MigrationRoute.fileToFile, .memoryToMemory])
    func oneStorageAtBothEndsLosesNothing(_ route: MigrationRoute) async throws {
        let ends = try MigrationEnds(route)
        try await ends.from().fill()
        let items = try await ends.from().everything()
        for conflicts in TokenMigration.ConflictRule.allCases {
            let summary = await TokenMigration(
                from: ends.source, to: ends.source,
                options: .init(deletesAtSource: true, conflicts: conflicts)
            ).run()
            #expect(summary.stop?.error.code == .invalidArgument && summary.deleted == 0)
        }
        #expect(try await ends.from().everything() == items)
        // A policy change on the way does not matter.
        let mapped = await TokenMigration(
            from: ends.source, to: ends.source,
            options: .init(
                deletesAtSource: true, conflicts: .replace,
                policies: [.whenUnlockedThisDeviceOnly: .whenUnlocked])
        ).run()
        #expect(mapped.stop?.error.code == .invalidArgument && mapped.deleted == 0)
        #expect(try await ends.from().list().items.count == items.count)
        // Another service of the same vault counts as another place.
        let renamed = await TokenMigration(
            from: ends.from(), to: ends.from("other"), options: .init(deletesAtSource: true)
        ).run()
        #expect(renamed.isComplete && renamed.deleted == items.count, "\(renamed)")
    }

    @Test func nothingSaidCarriesASecretOrAKey() async throws {
        let ends = try MigrationEnds(.memoryToFile)
        try await ends.from().store(token: "fake-hush", for: "quiet-key", label: "quiet-label")
        try await ends.to().store(token: "fake-hush-too", for: "quiet-key")
        let summary = await TokenMigration(from: ends.from(), to: ends.to()).run()
        var dumped = ""
        dump(summary.stop, to: &dumped)
        for text in ["\(summary)", "\(summary.remaining)", "\(String(describing: summary.stop))", dumped] {
            #expect(!text.contains("hush") && !text.contains("quiet"), "\(text)")
        }
        dump(summary, to: &dumped)
        #expect(!dumped.contains("hush"))
    }
}
