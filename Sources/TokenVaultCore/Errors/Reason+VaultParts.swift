// The parts of a reason that are about a vault, a keyring or the agent.

extension TokenStorageError.Reason {
    /// A damaged part of the vault's file.
    @nonexhaustive
    public enum DamagedPart: String, CaseIterable, Hashable, Sendable {
        /// A frame of a commit that had been acknowledged.
        case acknowledgedFrame
        /// The record of the commits before the log.
        case ancestryRecord
        /// Bytes where the file should have only zeros.
        case bytesAmongZeros
        /// A control record.
        case controlRecord
        /// The end of the file, which comes too early.
        case end
        /// The first frame of the log.
        case firstFrame
        /// A frame.
        case frame
        /// A frame with a whole frame behind it.
        case frameBeforeWholeFrame
        /// The end of a frame.
        case frameEnd
        /// A whole frame that was written for another place.
        case frameOutOfPlace
        /// The index.
        case index
        /// A page of the index.
        case indexPage
        /// The pointer to the index.
        case indexPointer
        /// An item.
        case item
        /// A copy of the keybag.
        case keybagCopy
        /// A record that names the keybag in use.
        case keybagRecord
        /// The first frame, which is missing.
        case noFirstFrame
        /// An index that does not match the log.
        case otherIndex
        /// A copy of the keybag that is not in use.
        case otherKeybagCopy
        /// A pointer that leads to no index.
        case pointerToNoIndex
        /// A replaced value.
        case replacedValue
        /// A control record whose authentication fails.
        case unopenedControlRecord
        /// An item whose authentication fails.
        case unopenedItem
        /// A value.
        case value
    }

    /// A damaged thing without a known offset.
    @nonexhaustive
    public enum Damaged: String, CaseIterable, Hashable, Sendable {
        /// Both copies of the keybag.
        case bothKeybags
        /// Both copies of the keybag of a copy of the vault.
        case bothKeybagsOfCopy
        /// An export that has a key twice.
        case exportedKeyTwice
        /// An item.
        case item
        /// A keybag whose authentication fails.
        case keybag
        /// The keybag that the log names, of which no copy is left.
        case keybagInUse
        /// The encoding of a secret in the keyring.
        case keyringEncoding
        /// An export that begins like lines of JSON.
        case linesOfJSON
        /// A migrated item, which reads back differently.
        case migratedItem
        /// The log's numbers, which are used up.
        case numbers
        /// A stored secret, which reads back differently.
        case secretNotReadBack
        /// A file of tokens that gives no secrets.
        case tokenFile
    }

    /// The damage of an export.
    @nonexhaustive
    public enum ExportDamage: String, CaseIterable, Hashable, Sendable {
        /// The export is cut off.
        case cutOff
        /// The export is cut off or damaged.
        case cutOffOrDamaged
        /// An item in the export is damaged.
        case damagedItem
        /// The file is not an export, or is cut off near its beginning.
        case notAnExport
        /// A line in the export ends too early.
        case unexpectedEnd
        /// An item in the export cannot be read.
        case unreadableItem
    }

    /// Data that a newer version wrote.
    @nonexhaustive
    public enum Newer: String, CaseIterable, Hashable, Sendable {
        /// An export.
        case export
        /// The header of a frame.
        case frameHeader
        /// A class of keys.
        case keyClass
        /// An unfinished commit in the keyring.
        case keyringCommit
        /// An item in the keyring.
        case keyringItem
        /// A record of the log.
        case record
    }

    /// The relation between a file and the vault of this device.
    @nonexhaustive
    public enum Ancestry: String, CaseIterable, Hashable, Sendable {
        /// Another file has become the vault meanwhile.
        case becameElsewhere
        /// A copy's keys were rotated after the two files parted.
        case keysRotatedInCopy
        /// Neither of two files has all commits that this device has seen.
        case neitherHasAll
        /// Two files have no commit in common.
        case nothingInCommon
        /// The file is a copy, which can only be read.
        case readOnlyCopy
        /// The keys were rotated in the copy, which has a device that the vault has removed.
        case removedDeviceInCopy
        /// A copy does not have a slot of the vault any more, and their root keys differ.
        case slotRemovedInCopy
        /// A copy has another slot in the place of one of the vault, and their root keys differ.
        case slotReplacedInCopy
        /// A merge would leave more values in the copy than the merged file can note.
        case tooManyLeft
        /// Another file took the vault's place.
        case tookPlace
        /// The keys of a file do not come from those that this device knows of the vault.
        case unrelatedKeys
    }

    /// A thing that changed meanwhile, or has another value.
    @nonexhaustive
    public enum Changed: String, CaseIterable, Hashable, Sendable {
        /// The keybag of a copy: by a merge, or by a change of slots or devices.
        case copy
        /// The file of a copy.
        case copyFile
        /// An item of the destination, which differs from that of the source.
        case destination
        /// The keybag.
        case keybag
        /// Commits in the keyring, which differed at each reading.
        case keyringCommits
        /// An item, which another program deleted from the keyring.
        case keyringItem
        /// Items of the keyring, which differed at each reading.
        case keyringItems
        /// The keyring, which was deleted or is no longer the default.
        case keyringReplaced
        /// The session with the Secret Service.
        case keyringSession
        /// The keys of the vault.
        case keys
        /// The lock state: the vault was locked again.
        case lockedAgain
        /// The agent: another agent runs.
        case otherAgent
        /// The passphrase.
        case passphrase
        /// The slots, to which a passphrase was added.
        case passphraseAdded
        /// The root key of the vault.
        case root
        /// The slots, to which a slot was added.
        case slotAdded
        /// The slots.
        case slots
        /// A secret that the storage has under a key of a file of tokens.
        case storedSecret
        /// The file of tokens, during its import.
        case tokenFile
    }

    /// An operation that is not permitted, and needs another way.
    @nonexhaustive
    public enum Permission: String, CaseIterable, Hashable, Sendable {
        /// To use a connection of the parent process in a forked child.
        case agentFork
        /// To change a recovery key.
        case changeRecoveryKey
        /// An operation that requires a slot that opens everything.
        case everything
        /// To use a vault of the parent process in a forked child.
        case fork
        /// To open an item that the slot does not lead to.
        case item
        /// To change an item that another program made.
        case itemOfAnotherProgram
        /// To remove the last slot that opens everything.
        case lastFullSlot
        /// To use items that need a passphrase.
        case passcodeItems
        /// To replace a passphrase without giving the passphrase itself.
        case passphraseToReplace
        /// To send secrets through the bus unencrypted.
        case plainSession
        /// To store under a policy that the slot does not lead to.
        case storing
    }

    /// A problem with slots, devices or the keys that open them.
    @nonexhaustive
    public enum Slots: String, CaseIterable, Hashable, Sendable {
        /// The keybag has no room for another device.
        case devicesFull
        /// The devices of two files do not fit into one keybag.
        case devicesOfBothFiles
        /// The keybag has no room for more class keys or slots.
        case keysFull
        /// The keyring returns another key than the one stored there.
        case keyringGivesOtherKey
        /// The keyring has no key of the vault.
        case keyringHasNoKey
        /// The passphrase does not open the export.
        case passphraseOfExport
    }

    /// A slot by its number and kind.
    public struct Slot: Hashable, Sendable {
        /// The slot's number.
        public var id: Int
        /// The kind of method that opens the slot.
        public var kind: VaultSlot.Kind

        /// Creates the slot `id`, which `kind` opens.
        public init(id: Int, kind: VaultSlot.Kind) {
            self.id = id
            self.kind = kind
        }
    }

    /// The last finished step of a change of slots.
    @nonexhaustive
    public enum Step: String, CaseIterable, Hashable, Sendable {
        /// The keys were replaced.
        case keyRotation
        /// The slot was removed.
        case slotRemoval
    }

    /// An alternative to a policy that is not supported.
    @nonexhaustive
    public enum Alternative: Hashable, Sendable {
        /// The given policy, which is the storage's default.
        case policy(AccessPolicy)
        /// The same policy, after a passphrase was added.
        case afterPassphrase
        /// The same policy, after the device is enrolled.
        case afterEnrolment
        /// The policy works after the device is removed from the vault and enrolled again: a file of its keys is missing.
        case afterNewEnrolment
        /// The file vault.
        case fileVault
    }

    /// A problem with the keyring.
    @nonexhaustive
    public enum Keyring: String, CaseIterable, Hashable, Sendable {
        /// The connection to the session bus was lost.
        case busLost
        /// The prompt for a new keyring was dismissed, or could not be shown.
        case creationDismissed
        /// The Secret Service answers for another session.
        case foreignSession
        /// The keyring is locked.
        case locked
        /// There is no default keyring.
        case noDefault
        /// There is no keyring with the label.
        case noneOfThatName
        /// The prompt to unlock was dismissed, or could not be shown.
        case promptDismissed
        /// An answer is not of the form that its interface says.
        case unexpectedAnswer
    }

    /// A problem with the agent.
    @nonexhaustive
    public enum Agent: String, CaseIterable, Hashable, Sendable {
        /// Another program keeps the agent's directory locked.
        case directoryLocked
        /// The agent does not hold the vault.
        case doesNotHoldVault
        /// The agent ended the connection.
        case endedConnection
        /// An agent runs but does not listen at its socket.
        case notListening
        /// The agent speaks another version of the protocol.
        case otherVersion
        /// The agent's answer cannot be read.
        case unreadableAnswer
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

    /// A problem with a systemd credential.
    @nonexhaustive
    public enum Credential: Hashable, Sendable {
        /// `CREDENTIALS_DIRECTORY` is not set.
        case noDirectory
        /// The credential is not a file.
        case notAFile
        /// The credential could not be read, for the reason given.
        case unreadable(TokenStorageError.Reason?)
        /// The credential opens no slot of the vault.
        case noSlot
    }
}
