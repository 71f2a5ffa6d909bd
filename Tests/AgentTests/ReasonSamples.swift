import TokenVault

extension TokenStorageError.Reason {
    /// At least one of every reason: a new case does not compile before it is among them.
    static var samples: [Self] {
        var samples: [Self] = []
        var next: Self? = .limit(.account)
        while let reason = next {
            samples += reason.variants
            next = reason.successor
        }
        return samples
    }

    private static var call: SystemCall { SystemCall(name: "fsync", errorNumber: 5) }

    /// The reason with each part that it can have.
    private var variants: [Self] {
        switch self {
        case .limit: Limit.allCases.map { .limit($0) }
        case .shortage: Shortage.allCases.map { .shortage($0) }
        case .deadline: Deadline.allCases.map { .deadline($0) }
        case .missing: Missing.allCases.map { .missing($0) }
        case .notARegularFile: FileKind.allCases.map { .notARegularFile($0) }
        case .exists: Existing.allCases.map { .exists($0) }
        case .damage: DamagedPart.allCases.map { .damage($0, offset: 16_896) }
        case .damaged: Damaged.allCases.map { .damaged($0) }
        case .damagedExport:
            ExportDamage.allCases.flatMap {
                [.damagedExport($0, offset: 1 << 40), .damagedExport($0, offset: nil)]
            }
        case .newerFormat: Newer.allCases.map { .newerFormat($0) }
        case .ancestry: Ancestry.allCases.map { .ancestry($0) }
        case .changedMeanwhile: Changed.allCases.map { .changedMeanwhile($0) }
        case .permission: Permission.allCases.map { .permission($0) }
        case .slots: Slots.allCases.map { .slots($0) }
        case .keyring: Keyring.allCases.map { .keyring($0) }
        case .agent: Agent.allCases.map { .agent($0) }
        case .agentDirectoryForeign:
            ForeignAgent.allCases.map { .agentDirectoryForeign($0, path: "/p") }
        case .ownedByAnotherUser: Self.places.map { .ownedByAnotherUser($0, user: .max) }
        case .writableByOthers: Self.places.map { .writableByOthers($0) }
        case .readOnly: [.readOnly(.requested), .readOnly(.fileSystem), .readOnly(.permissions)]
        case .policyUnsupported:
            [.policy(.whenUnlocked), .afterPassphrase, .afterEnrolment, .fileVault].map {
                .policyUnsupported($0)
            }
        case .passcodeItemsDeleted: Step.allCases.map { .passcodeItemsDeleted(until: $0, nil) }
        case .credential:
            [.noDirectory, .notAFile, .unreadable(nil), .unreadable(.systemCall(Self.call)), .noSlot].map {
                .credential("tokens", $0)
            }
        case .other: [.other(explanation: "e", advice: "a"), .other(explanation: nil, advice: "a")]
        case .unknownOutcome: [self, .unknownOutcome(.keyring(.busLost))]
        case .choiceDirectory: [self, .choiceDirectory(nil)]
        case .deviceKeyMissing: [self, .deviceKeyMissing(path: nil)]
        case .directoryClosed: [self, .directoryClosed(path: "/p", owner: nil, of: nil)]
        case .differingValues: [self, .differingValues(nil)]
        case .agentSilent: [self, .agentSilent(process: nil)]
        case .keyLeftInKeyring: [self, .keyLeftInKeyring(isForgotten: false, .keyring(.locked))]
        case .placeNotRemembered: [self, .placeNotRemembered(nil)]
        default: [self]
        }
    }

    private static var places: [Place] {
        [.path("/p"), .vaultDirectory("/d"), .stateDirectory, .vaultPlace, .tokenFile, .tokenFileDirectory]
    }

    /// The reason behind this one in the order of the declaration.
    private var successor: Self? {
        let cause = Self.systemCall(Self.call)
        return switch self {
        case .limit: .tooManyChanges(most: 1_000)
        case .tooManyChanges: .other(explanation: "e", advice: "a")
        case .other: .systemCall(Self.call)
        case .systemCall: .unknownOutcome(cause)
        case .unknownOutcome: .writingStopped(Self.call)
        case .writingStopped: .keybagNotWritten(cause)
        case .keybagNotWritten: .renameMayBeLost(Self.call)
        case .renameMayBeLost: .inputUnreadable(5)
        case .inputUnreadable: .noLocks(37)
        case .noLocks: .deviceKeyUnreadable(Self.call)
        case .deviceKeyUnreadable: .leaseFile(Self.call)
        case .leaseFile: .choiceDirectory(Self.call)
        case .choiceDirectory: .placeNotRemembered(cause)
        case .placeNotRemembered: .shortage(.logSize)
        case .shortage: .derivationMemoryOfGroup(needed: 64, left: 32)
        case .derivationMemoryOfGroup: .derivationMemory(needed: 64, left: 32)
        case .derivationMemory: .derivationMemoryInUse(needed: 64)
        case .derivationMemoryInUse: .derivationTime(milliseconds: 1_500)
        case .derivationTime: .importUnfinished(done: 64, of: 100)
        case .importUnfinished: .deadline(.writer)
        case .deadline: .vaultMissing(path: "/p")
        case .vaultMissing: .noVault(path: "/p")
        case .noVault: .noDirectory(path: "/p")
        case .noDirectory: .noCopy(path: "/p")
        case .noCopy: .noVaultToMergeInto(path: "/p")
        case .noVaultToMergeInto: .missing(.device)
        case .missing: .deviceKeyMissing(path: "/p")
        case .deviceKeyMissing:
            .noCandidate([
                .init(name: "keyring", code: .locked), .init(name: "file", code: .unavailable, reason: cause),
            ])
        case .noCandidate: .chosenStorageMissing(cause)
        case .chosenStorageMissing: .directoryClosed(path: "/p", owner: 1_000, of: "/")
        case .directoryClosed: .ownedByAnotherUser(.stateDirectory, user: 0)
        case .ownedByAnotherUser: .writableByOthers(.stateDirectory)
        case .writableByOthers: .notARegularFile(.directory)
        case .notARegularFile: .occupied(path: "/p")
        case .occupied: .exists(.vaultFile)
        case .exists: .hardLinks(count: 2, path: "/p")
        case .hardLinks: .readOnly(.requested)
        case .readOnly: .damage(.frame, offset: 0)
        case .damage: .damaged(.item)
        case .damaged: .damagedCopy(cause)
        case .damagedCopy: .damagedExport(.cutOff, offset: 1)
        case .damagedExport: .newerFormat(.record)
        case .newerFormat: .damagedChoice(file: "work.choice")
        case .damagedChoice: .replacedVault(path: "/p")
        case .replacedVault: .otherVaultExpected(path: "/p")
        case .otherVaultExpected: .copyOfAnotherVault(path: "/p")
        case .copyOfAnotherVault: .vaultIsElsewhere(path: "/p")
        case .vaultIsElsewhere: .forkedBeyondMemory(commits: 4_096)
        case .forkedBeyondMemory: .ancestry(.tookPlace)
        case .ancestry: .changedMeanwhile(.slots)
        case .changedMeanwhile: .permission(.item)
        case .permission: .slotWouldBeLost([.init(id: 1, kind: .passphrase), .init(id: 2, kind: .keyFile)])
        case .slotWouldBeLost: .slotExists(.init(id: 3, kind: .keyFile))
        case .slotExists: .mistypedGroups([1, 8])
        case .mistypedGroups: .slots(.devicesFull)
        case .slots: .passcodeItemsDeleted(until: .keyRotation, cause)
        case .passcodeItemsDeleted: .itemsBoundToDevice(3)
        case .itemsBoundToDevice: .differingValues(3)
        case .differingValues: .policyUnsupported(.fileVault)
        case .policyUnsupported: .keptValues(most: 100)
        case .keptValues: .keyLeftInKeyring(isForgotten: true, cause)
        case .keyLeftInKeyring: .noSessionBus("s")
        case .noSessionBus: .noSecretService("s")
        case .noSecretService: .serviceDidNotStart("s")
        case .serviceDidNotStart: .serviceEnded("s")
        case .serviceEnded: .noLibrary("libsecret-1.so.0")
        case .noLibrary: .busError("s")
        case .busError: .busDenied("s")
        case .busDenied: .writerNameDenied(name: "n", "s")
        case .writerNameDenied: .onlyPromptedCreation("s")
        case .onlyPromptedCreation: .commitUnfinished(cause)
        case .commitUnfinished: .earlierCommitUnfinished(cause)
        case .earlierCommitUnfinished: .unreadableCommit(schema: "s")
        case .unreadableCommit: .keyring(.locked)
        case .keyring: .noSystemBus(cause)
        case .noSystemBus: .agentDirectoryClosed
        case .agentDirectoryClosed: .agent(.notListening)
        case .agent: .tooManyFilesForAgent(Self.call)
        case .tooManyFilesForAgent: .agentMissing(Self.call)
        case .agentMissing: .agentLost(Self.call)
        case .agentLost: .agentSilent(process: 4_711)
        case .agentSilent: .agentDirectoryForeign(.notADirectory, path: "/p")
        case .agentDirectoryForeign: .agentDirectoryUnusable(path: "/p", Self.call)
        case .agentDirectoryUnusable: .agentSocketElsewhere(expected: "/p")
        case .agentSocketElsewhere: .agentOutcomeUnknown(cause)
        case .agentOutcomeUnknown: .credential("tokens", .noSlot)
        case .credential: nil
        }
    }
}
