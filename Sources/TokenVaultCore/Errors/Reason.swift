extension TokenStorageError {
    /// The cause of an error, for programs that act on more than its ``code``.
    ///
    /// The library makes ``TokenStorageError/underlying`` and ``TokenStorageError/advice`` from the reason.
    /// New reasons may come: a `switch` outside this package needs `@unknown default`.
    @nonexhaustive
    public indirect enum Reason: Hashable, Sendable {
        // MARK: The caller's arguments
        /// An argument is outside its limit.
        case limit(Limit)
        /// A commit has more changes than the storage accepts at once.
        case tooManyChanges(most: Int)
        /// Another reason, from a storage outside this package or from an agent of another version.
        case other(explanation: String?, advice: String?)

        // MARK: The system
        /// A system call failed.
        case systemCall(SystemCall)
        /// A write may have happened, for the reason given.
        case unknownOutcome(Reason?)
        /// The disk failed. The vault rejects writes until it is opened again or the log moves to a new file.
        case writingStopped(SystemCall)
        /// A copy of the keybag could not be written, for the reason given.
        case keybagNotWritten(Reason?)
        /// A file is in its place, but its directory could not be written to the disk.
        case renameMayBeLost(SystemCall)
        /// The imported data could not be read (`errno`).
        case inputUnreadable(Int32)
        /// The file system has no locks (`errno`).
        case noLocks(Int32)
        /// The device key's file could not be read.
        case deviceKeyUnreadable(SystemCall)
        /// The lock file of a refresh could not be used.
        case leaseFile(SystemCall)
        /// The directory of remembered choices could not be used.
        case choiceDirectory(SystemCall?)
        /// A file was put in the vault's place, but the state directory could not record that.
        case placeNotRemembered(Reason?)
        /// The program or the system lacks a resource.
        case shortage(Shortage)
        /// Deriving a key takes more memory, in MiB, than its control group has left.
        case derivationMemoryOfGroup(needed: Int, left: Int)
        /// Deriving a key takes more memory, in MiB, than is available.
        case derivationMemory(needed: Int, left: Int)
        /// Deriving a key takes memory, in MiB, that other derivations hold at the moment.
        case derivationMemoryInUse(needed: Int)
        /// Deriving a key takes at least this many milliseconds, and the deadline is earlier.
        case derivationTime(milliseconds: Int)
        /// The deadline of an import passed after `done` of its items.
        case importUnfinished(done: Int, of: Int)
        /// A deadline passed.
        case deadline(Deadline)

        // MARK: Missing things
        /// This device remembers a vault at the path, but its file is missing.
        case vaultMissing(path: String)
        /// No vault is at the path.
        case noVault(path: String)
        /// The directory for the vault does not exist.
        case noDirectory(path: String)
        /// No copy of a vault is at the path.
        case noCopy(path: String)
        /// No vault to merge a copy into is at the path.
        case noVaultToMergeInto(path: String)
        /// Another thing is missing.
        case missing(Missing)
        /// This device has no key in the state directory at the path; `nil` without a state directory.
        case deviceKeyMissing(path: String?)
        /// No candidate for a storage can be used.
        case noCandidate([RejectedCandidate])
        /// The storage chosen earlier cannot be used, for the reason given.
        case chosenStorageMissing(Reason?)
        /// This user may not look into a directory; `owner` is the other user whose directory `of` prevents
        /// it.
        case directoryClosed(path: String, owner: UInt32?, of: String?)

        // MARK: Other users
        /// A place belongs to another user.
        case ownedByAnotherUser(Place, user: UInt32)
        /// Other users may read or write what is in a place.
        case writableByOthers(Place)

        // MARK: Occupied places
        /// The place holds another kind of file than a regular file.
        case notARegularFile(FileKind)
        /// The file in the place of a vault is not a vault.
        case occupied(path: String)
        /// The thing exists already.
        case exists(Existing)
        /// The file has other names (hard links).
        case hardLinks(count: Int, path: String)
        /// The vault is open for reading only.
        case readOnly(ReadOnlyReason)

        // MARK: Damage
        /// A part of the vault's file is damaged; `offset` in bytes from its start.
        case damage(DamagedPart, offset: Int)
        /// A thing without an offset is damaged.
        case damaged(Damaged)
        /// A copy is damaged, for the reason given.
        case damagedCopy(Reason?)
        /// An export is damaged; `offset` in bytes from its start, where that is known.
        case damagedExport(ExportDamage, offset: Int?)
        /// A newer version wrote the data.
        case newerFormat(Newer)
        /// The file that remembers the choice of a storage, given by name, is damaged.
        case damagedChoice(file: String)

        // MARK: Vaults and copies
        /// The vault was replaced by another one.
        case replacedVault(path: String)
        /// This device expects another vault at the path.
        case otherVaultExpected(path: String)
        /// The copy at the path is of another vault.
        case copyOfAnotherVault(path: String)
        /// The same vault is at another path, too.
        case vaultIsElsewhere(path: String)
        /// This device has seen commits older than the last `commits` commits, which are all that the file
        /// remembers.
        case forkedBeyondMemory(commits: Int)
        /// The relation between a file and the vault.
        case ancestry(Ancestry)

        // MARK: Permitted changes
        /// Another process or call made a change meanwhile.
        case changedMeanwhile(Changed)
        /// The operation is not permitted.
        case permission(Permission)
        /// Rotating the keys would remove these slots.
        case slotWouldBeLost([Slot])
        /// This slot opens with the same method already.
        case slotExists(Slot)
        /// These groups of a recovery key, from 1, are mistyped.
        case mistypedGroups([Int])
        /// A problem with slots or devices.
        case slots(Slots)
        /// The items that need a passphrase were deleted. The change after that has an unknown outcome, for
        /// the reason given.
        case passcodeItemsDeleted(until: Step, Reason?)
        /// This many items may not leave this device.
        case itemsBoundToDevice(Int)
        /// This many keys have another value here; `nil` when they are not counted.
        case differingValues(Int?)
        /// The policy is not supported; the alternative is.
        case policyUnsupported(Alternative)
        /// A vault keeps at most this many earlier values.
        case keptValues(most: Int)

        /// A vault was removed (`isForgotten`: forgotten), and its key is left in the keyring, for the reason
        /// given.
        case keyLeftInKeyring(isForgotten: Bool, Reason?)

        // MARK: The desktop's keyring
        /// There is no session bus; with the text of the bus library.
        case noSessionBus(String)
        /// There is no Secret Service; with the text of the bus.
        case noSecretService(String)
        /// The Secret Service did not start; with the text of the bus.
        case serviceDidNotStart(String)
        /// The Secret Service ended during the call; with the text of the bus.
        case serviceEnded(String)
        /// libsecret, or a part of it, is not installed.
        case noLibrary(String)
        /// The bus reported an error; with its text.
        case busError(String)
        /// The bus does not allow the call; with its text.
        case busDenied(String)
        /// The bus does not allow the name of a writer; with its text.
        case writerNameDenied(name: String, String)
        /// The service creates keyrings only with its own prompt; with its text.
        case onlyPromptedCreation(String)
        /// A commit began and did not end, for the reason given; the next write finishes the commit.
        case commitUnfinished(Reason?)
        /// An earlier commit could not be finished, for the reason given.
        case earlierCommitUnfinished(Reason?)
        /// An unfinished commit cannot be read; with the schema of its item.
        case unreadableCommit(schema: String)
        /// A problem with the keyring.
        case keyring(Keyring)
        /// There is no system bus, for the reason given.
        case noSystemBus(Reason?)

        // MARK: The agent
        /// The agent's directory cannot be entered.
        case agentDirectoryClosed
        /// The agent cannot be reached for another reason.
        case agent(Agent)
        /// The agent cannot be reached, since the process or the system is out of descriptors or memory.
        case tooManyFilesForAgent(SystemCall)
        /// No agent answers at the socket.
        case agentMissing(SystemCall)
        /// A system call failed on the connection to the agent.
        case agentLost(SystemCall)
        /// The agent did not answer in time; with the number of its process, where that is known.
        case agentSilent(process: Int32?)
        /// The agent's directory at `path`, or the socket in it, is not this user's alone.
        case agentDirectoryForeign(ForeignAgent, path: String)
        /// The agent's directory cannot be made or used.
        case agentDirectoryUnusable(path: String, SystemCall)
        /// The service manager passed on another socket than the expected one.
        case agentSocketElsewhere(expected: String)
        /// A write through the agent may have happened, for the reason given.
        case agentOutcomeUnknown(Reason?)
        /// A systemd credential, by name.
        case credential(String, Credential)
    }
}
