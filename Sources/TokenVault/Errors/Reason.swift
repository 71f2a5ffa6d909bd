extension TokenStorageError {
    /// What led to an error, for programs that act on more than its ``code``.
    ///
    /// ``TokenStorageError/underlying`` and ``TokenStorageError/advice`` are made from it. New reasons may come: a `switch`
    /// outside this package needs `@unknown default`.
    @nonexhaustive
    public indirect enum Reason: Hashable, Sendable {
        // MARK: What the caller gave
        /// An argument is outside its limit.
        case limit(Limit)
        /// A commit has more changes than the storage takes at once.
        case tooManyChanges(most: Int)
        /// A storage outside this package has another reason, or an agent has one that this version does not know.
        case other(explanation: String?, advice: String?)

        // MARK: What the system did
        /// A system call failed.
        case systemCall(SystemCall)
        /// A write may have happened, for the reason given.
        case unknownOutcome(Reason?)
        /// The disk failed, and the vault is not written to until it is opened again or the log moves to a new file.
        case writingStopped(SystemCall)
        /// A copy of the keybag could not be written, for the reason given.
        case keybagNotWritten(Reason?)
        /// A file is in its place, and its directory could not be written to the disk.
        case renameMayBeLost(SystemCall)
        /// What is imported could not be read (`errno`).
        case inputUnreadable(Int32)
        /// The file system has no locks (`errno`).
        case noLocks(Int32)
        /// The device key's file could not be read.
        case deviceKeyUnreadable(SystemCall)
        /// The lock file of a refresh could not be used.
        case leaseFile(SystemCall)
        /// The directory of remembered choices could not be used.
        case choiceDirectory(SystemCall?)
        /// The state directory could not be written to after a file was put in its place.
        case placeNotRemembered(Reason?)
        /// Something that is short, in the program or the system.
        case shortage(Shortage)
        /// Deriving a key takes more memory, in MiB, than its control group has left.
        case derivationMemoryOfGroup(needed: Int, left: Int)
        /// Deriving a key takes more memory, in MiB, than there is for it.
        case derivationMemory(needed: Int, left: Int)
        /// Deriving a key takes memory, in MiB, that others have at the moment.
        case derivationMemoryInUse(needed: Int)
        /// Deriving a key takes at least so many milliseconds, and the deadline is before that.
        case derivationTime(milliseconds: Int)
        /// The deadline of an import passed after `done` of its items.
        case importUnfinished(done: Int, of: Int)
        /// A deadline passed.
        case deadline(Deadline)

        // MARK: What is missing
        /// This device remembers a vault at the path, and its file is not there.
        case vaultMissing(path: String)
        /// No vault is at the path.
        case noVault(path: String)
        /// The directory that the vault is to be in does not exist.
        case noDirectory(path: String)
        /// No copy of a vault is at the path.
        case noCopy(path: String)
        /// No vault that a copy could be merged into is at the path.
        case noVaultToMergeInto(path: String)
        /// Another thing is missing.
        case missing(Missing)
        /// This device has no key in the state directory at the path; `nil` without a state directory.
        case deviceKeyMissing(path: String?)
        /// None of the candidates for a storage can be used; one line for each.
        case noCandidate([String])
        /// The storage that was chosen before cannot be used, for the reason given.
        case chosenStorageMissing(Reason?)
        /// A directory may not be looked into; `owner` is another user whose directory `of` keeps this one out.
        case directoryClosed(path: String, owner: UInt32?, of: String?)

        // MARK: What others may do
        /// A place belongs to another user.
        case ownedByAnotherUser(Place, user: UInt32)
        /// Other users may read or write what is in a place.
        case writableByOthers(Place)

        // MARK: What is in a place
        /// There is something else than a file of its own.
        case notARegularFile(FileKind)
        /// What is in the place of a vault is none.
        case occupied(path: String)
        /// Something is there already.
        case exists(Existing)
        /// The file has other names (hard links).
        case hardLinks(count: Int, path: String)
        /// The vault is open for reading only.
        case readOnly(ReadOnlyReason)

        // MARK: What is damaged
        /// A part of the vault's file is damaged; `offset` in bytes from its start.
        case damage(DamagedPart, offset: Int)
        /// A thing without an offset is damaged.
        case damaged(Damaged)
        /// A copy is damaged, for the reason given.
        case damagedCopy(Reason?)
        /// An export is damaged; `offset` in bytes from its start, where that is known.
        case damagedExport(ExportDamage, offset: Int?)
        /// A newer version wrote it.
        case newerFormat(Newer)
        /// The file remembered as the choice of a storage, by name, is damaged.
        case damagedChoice(file: String)

        // MARK: Which vault
        /// The vault was replaced by another one.
        case replacedVault(path: String)
        /// This device expects another vault at the path.
        case otherVaultExpected(path: String)
        /// The copy at the path is of another vault.
        case copyOfAnotherVault(path: String)
        /// The same vault is at another path, too.
        case vaultIsElsewhere(path: String)
        /// This device has seen commits that are further back than the file remembers, which is so many commits.
        case forkedBeyondMemory(commits: Int)
        /// How a file and the vault are related.
        case ancestry(Ancestry)

        // MARK: What may be done
        /// What was changed by another process or call meanwhile.
        case changedMeanwhile(Changed)
        /// What an unlock method may not do.
        case permission(Permission)
        /// Rotating the keys would remove these slots.
        case slotWouldBeLost([Slot])
        /// These groups of a recovery key, from 1, are mistyped.
        case mistypedGroups([Int])
        /// Something about slots and devices.
        case slots(Slots)
        /// The items that need a passphrase were deleted, and the change after that has an unknown outcome, for the reason given.
        case passcodeItemsDeleted(until: Step, Reason?)
        /// So many items may not leave this device.
        case itemsBoundToDevice(Int)
        /// So many keys have another value here; `nil` when they are not counted.
        case differingValues(Int?)
        /// The policy is not supported; the alternative is.
        case policyUnsupported(Alternative)
        /// A vault keeps at most so many earlier values.
        case keptValues(most: Int)

        /// A vault was removed (`isForgotten`: forgotten), and its key is left in the keyring, for the reason given.
        case keyLeftInKeyring(isForgotten: Bool, Reason?)

        // MARK: The desktop's keyring
        /// No session bus, and what the bus library said.
        case noSessionBus(String)
        /// No Secret Service, and what the bus said.
        case noSecretService(String)
        /// The Secret Service did not start, and what the bus said.
        case serviceDidNotStart(String)
        /// The Secret Service ended during the call, and what the bus said.
        case serviceEnded(String)
        /// libsecret, or a part of it, is not installed.
        case noLibrary(String)
        /// What a D-Bus error says.
        case busError(String)
        /// The bus does not allow the call, and what it said.
        case busDenied(String)
        /// The bus does not allow the name of a writer, and what it said.
        case writerNameDenied(name: String, String)
        /// The service creates keyrings with its own prompt only, and what it said.
        case onlyPromptedCreation(String)
        /// A commit has begun and is finished by the next write, for the reason given.
        case commitUnfinished(Reason?)
        /// An earlier commit could not be finished, for the reason given.
        case earlierCommitUnfinished(Reason?)
        /// A commit that was left unfinished cannot be read; the schema of its item.
        case unreadableCommit(schema: String)
        /// Something about the keyring.
        case keyring(Keyring)
        /// There is no system bus, for the reason given.
        case noSystemBus(Reason?)

        // MARK: The agent
        /// The agent's directory cannot be entered.
        case agentDirectoryClosed
        /// The agent cannot be reached for another reason.
        case agent(Agent)
        /// The agent cannot be asked, since the process or the system is out of descriptors or memory.
        case tooManyFilesForAgent(SystemCall)
        /// No agent answers at the socket.
        case agentMissing(SystemCall)
        /// A system call failed on the connection to the agent.
        case agentLost(SystemCall)
        /// The agent did not answer in time; the number of its process, where that is known.
        case agentSilent(process: Int32?)
        /// The agent's directory at `path`, or the socket in it, is not this user's alone.
        case agentDirectoryForeign(ForeignAgent, path: String)
        /// The directory of the agent cannot be made or used.
        case agentDirectoryUnusable(path: String, SystemCall)
        /// The socket that the service manager passed on is not the expected one.
        case agentSocketElsewhere(expected: String)
        /// A write through the agent may have happened, for the reason given.
        case agentOutcomeUnknown(Reason?)
        /// A systemd credential, by name.
        case credential(String, Credential)
    }
}
