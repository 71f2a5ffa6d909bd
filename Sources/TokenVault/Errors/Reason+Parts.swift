internal import SystemPackage
package import TokenVaultPlatform

extension TokenStorageError.Reason {
    /// A system call and the error number it failed with.
    public struct SystemCall: Hashable, Sendable {
        /// The call's name, as `fdatasync`.
        public var name: String
        /// What it failed with (`errno`).
        public var errorNumber: Int32

        /// The failure of the call `name` with `errorNumber`.
        public init(name: String, errorNumber: Int32) {
            self.name = name
            self.errorNumber = errorNumber
        }
    }

    /// What has a limit.
    @nonexhaustive
    public enum Limit: String, CaseIterable, Hashable, Sendable {
        case account, attribute, attributeCount, attributesLength, candidate, candidateNames
        case commitLength, cost, emptyKeyringPassphrase, expiry, exportPath, filePath,
            fileOfTokens
        case importedKeyTwice, itemSize, keyFile, keyTwice, keyringKey, keyringLabel, keptGeneration, label
        case linkedPath, lockInterval, mergedWithItself, passphrase, passphraseLikeRecoveryKey, prefix,
            recoveryKey
        case reservedService, sameStorage, service, slotScope, socketPath, vaultName, vaultNameEnding
    }

    /// What the program or the system has too little of.
    @nonexhaustive
    public enum Shortage: String, CaseIterable, Hashable, Sendable {
        case commitRoom, encryption, guardedMemory, heldVaults, logSize, memoryForPassphrase, threadForLock
    }

    /// What took too long.
    @nonexhaustive
    public enum Deadline: String, CaseIterable, Hashable, Sendable {
        case agentConnection, earlierRequest, export, importing, keybagChanges, listing, prompt, unlocking,
            writer
    }

    /// What is not there.
    @nonexhaustive
    public enum Missing: String, CaseIterable, Hashable, Sendable {
        case cancelledMigration, device, earlierValue, export, stateDirectory, vaultToForget, vaultDirectory
    }

    /// A place in the file system with an owner and a mode.
    @nonexhaustive
    public enum Place: Hashable, Sendable {
        /// What is at the path.
        case path(String)
        /// The directory of a vault, by path.
        case vaultDirectory(String)
        /// The state directory.
        case stateDirectory
        /// A file at the path of a vault.
        case vaultPlace
        /// A file with tokens in plain text.
        case tokenFile
        /// The directory of such a file.
        case tokenFileDirectory
    }

    /// A kind of file.
    @nonexhaustive
    public enum FileKind: String, CaseIterable, Hashable, Sendable {
        case directory, special, symbolicLink, other
    }

    /// What is there already.
    @nonexhaustive
    public enum Existing: String, CaseIterable, Hashable, Sendable {
        case agentPlace, defaultKeyring, enrolment, keyringOfThatName, keyringSlot, otherVault, vaultFile,
            vaultToForget
    }

    /// A part of the vault's file.
    @nonexhaustive
    public enum DamagedPart: String, CaseIterable, Hashable, Sendable {
        case acknowledgedFrame, ancestryRecord, bytesAmongZeros, controlRecord, end, firstFrame, frame
        case frameBeforeWholeFrame, frameEnd, frameOutOfPlace, index, indexPage, indexPointer, item,
            keybagCopy
        case keybagRecord, noFirstFrame, otherIndex, otherKeybagCopy, pointerToNoIndex, replacedValue,
            unopenedControlRecord
        case unopenedItem, value
    }

    /// What is damaged, without an offset.
    @nonexhaustive
    public enum Damaged: String, CaseIterable, Hashable, Sendable {
        case bothKeybags, bothKeybagsOfCopy, exportedKeyTwice, item, keybag, keybagInUse, keyringEncoding
        case linesOfJSON, migratedItem, numbers, secretNotReadBack, tokenFile
    }

    /// What is wrong with an export.
    @nonexhaustive
    public enum ExportDamage: String, CaseIterable, Hashable, Sendable {
        case cutOff, cutOffOrDamaged, damagedItem, notAnExport, unexpectedEnd, unreadableItem
    }

    /// What a newer version wrote.
    @nonexhaustive
    public enum Newer: String, CaseIterable, Hashable, Sendable {
        case export, frameHeader, keyClass, keyringCommit, keyringItem, record
    }

    /// How a file and the vault of this device are related.
    @nonexhaustive
    public enum Ancestry: String, CaseIterable, Hashable, Sendable {
        case becameElsewhere, neitherHasAll, nothingInCommon, readOnlyCopy, tookPlace
    }

    /// What was changed meanwhile.
    @nonexhaustive
    public enum Changed: String, CaseIterable, Hashable, Sendable {
        case copy, copyFile, keybag, keys, keyringItem, keyringItems, keyringCommits, keyringReplaced,
            keyringSession
        case lockedAgain, passphrase, passphraseAdded, root, slotAdded, slots, storedSecret, tokenFile,
            otherAgent
        case destination
    }

    /// What an unlock method may not do.
    @nonexhaustive
    public enum Permission: String, CaseIterable, Hashable, Sendable {
        case changeRecoveryKey, everything, item, itemOfAnotherProgram, lastFullSlot, passcodeItems
        case passphraseToReplace, storing, fork, agentFork, plainSession
    }

    /// What is the matter with slots and devices.
    @nonexhaustive
    public enum Slots: String, CaseIterable, Hashable, Sendable {
        case devicesFull, devicesOfBothFiles, interruptedChange, keyringGivesOtherKey, keyringHasNoKey
        case passphraseOfExport
    }

    /// A slot by its number and kind.
    public struct Slot: Hashable, Sendable {
        /// Its number.
        public var id: Int
        /// What opens it.
        public var kind: VaultSlot.Kind

        /// The slot `id`, which `kind` opens.
        public init(id: Int, kind: VaultSlot.Kind) {
            self.id = id
            self.kind = kind
        }
    }

    /// How far a change of slots has come.
    @nonexhaustive
    public enum Step: String, CaseIterable, Hashable, Sendable {
        case slotRemoval, keyRotation
    }

    /// What to store under instead of a policy.
    @nonexhaustive
    public enum Alternative: Hashable, Sendable {
        /// This policy, the storage's default.
        case policy(AccessPolicy)
        /// The same one, after a passphrase was added.
        case afterPassphrase
        /// The same one, after the device is enrolled.
        case afterEnrolment
        /// The file vault.
        case fileVault
    }

    /// What is the matter with the keyring.
    @nonexhaustive
    public enum Keyring: String, CaseIterable, Hashable, Sendable {
        case busLost, foreignSession, locked, noDefault, noneOfThatName, promptDismissed, creationDismissed
        case unexpectedAnswer
    }

    /// What is the matter with the agent.
    @nonexhaustive
    public enum Agent: String, CaseIterable, Hashable, Sendable {
        case directoryLocked, doesNotHoldVault, endedConnection, notListening, otherVersion, unreadableAnswer
    }

    /// The part of the agent's directory that is not this user's alone.
    @nonexhaustive
    public enum ForeignAgent: String, CaseIterable, Hashable, Sendable {
        /// The directory is a link, or another kind of file.
        case notADirectory
        /// Another user owns the directory.
        case ownedByAnotherUser
        /// Other users may open the directory.
        case openToOthers
        /// A program of another user answers at the socket.
        case answeredByAnotherUser
        /// Another user owns the socket.
        case socketOfAnotherUser
    }

    /// What is the matter with a systemd credential.
    @nonexhaustive
    public enum Credential: Hashable, Sendable {
        /// `CREDENTIALS_DIRECTORY` is not set.
        case noDirectory
        /// It is no file.
        case notAFile
        /// It could not be read, for the reason given.
        case unreadable(TokenStorageError.Reason?)
        /// No slot of the vault has it.
        case noSlot
    }
}

extension TokenStorageError.Reason.SystemCall {
    /// The call that ended with `failure`.
    package init(_ failure: SystemFailure) {
        self.init(name: failure.call, errorNumber: failure.errno.rawValue)
    }
}
