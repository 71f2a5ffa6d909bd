internal import SystemPackage
package import TokenVaultPlatform

extension TokenStorageError.Reason {
    /// A system call and the error number it failed with.
    public struct SystemCall: Hashable, Sendable {
        /// The call's name, as `fdatasync`.
        public var name: String
        /// The error number of the failure (`errno`).
        public var errorNumber: Int32

        /// Creates the failure of the call `name` with `errorNumber`.
        public init(name: String, errorNumber: Int32) {
            self.name = name
            self.errorNumber = errorNumber
        }
    }

    /// A candidate that a ``StorageChooser`` could not pick.
    public struct RejectedCandidate: Hashable, Sendable {
        /// The candidate's name.
        public var name: String
        /// The code of its error.
        public var code: TokenStorageError.Code
        /// The reason of its error; `nil` where none is known.
        public var reason: TokenStorageError.Reason?

        /// Creates the rejection of the candidate `name`.
        public init(
            name: String, code: TokenStorageError.Code, reason: TokenStorageError.Reason? = nil
        ) {
            self.name = name
            self.code = code
            self.reason = reason
        }
    }

    /// An argument that the library refuses because of its limits or its meaning.
    @nonexhaustive
    public enum Limit: String, CaseIterable, Hashable, Sendable {
        /// An account is not 1 to 1,000 bytes of UTF-8.
        case account
        /// A name or value of an attribute is longer than 1,024 bytes of UTF-8.
        case attribute
        /// An item has more than 64 attributes.
        case attributeCount
        /// The attributes of an item are longer than 60 KiB.
        case attributesLength
        /// No candidate has the name.
        case candidate
        /// Two candidates have one name, or a name cannot be used.
        case candidateNames
        /// A commit is longer than 32 MiB.
        case commitLength
        /// A cost is not 3 to 12 passes over 64 MiB to 2 GiB.
        case cost
        /// The passphrase of a new keyring is empty, which would leave it unencrypted.
        case emptyKeyringPassphrase
        /// An expiry is not in the years 1 to 9999.
        case expiry
        /// The path of an export does not end in a name of UTF-8.
        case exportPath
        /// A file of tokens is longer than 16 MiB.
        case fileOfTokens
        /// The path names no file.
        case filePath
        /// An import has a key twice.
        case importedKeyTwice
        /// An item is larger than an item may be.
        case itemSize
        /// The generation to go back to is the item's present generation.
        case keptGeneration
        /// A key file is not 32 to 4,096 bytes long.
        case keyFile
        /// A commit changes a key twice.
        case keyTwice
        /// A key from a keyring is not 32 bytes long.
        case keyringKey
        /// The label of a keyring is empty or has control characters.
        case keyringLabel
        /// A label is longer than 1,024 bytes or has control characters.
        case label
        /// The path of a vault leads through a link, or is longer than 4,095 bytes.
        case linkedPath
        /// The time until a vault locks itself is zero or less.
        case lockInterval
        /// The copy to merge is the vault itself.
        case mergedWithItself
        /// A passphrase is empty or longer than 1 MiB.
        case passphrase
        /// A new passphrase reads like a mistyped recovery key.
        case passphraseLikeRecoveryKey
        /// A prefix is longer than 1,024 bytes.
        case prefix
        /// A recovery key is not eight groups of five characters.
        case recoveryKey
        /// The service is reserved for the keys of vaults.
        case reservedService
        /// Source and destination are the same storage.
        case sameStorage
        /// A service is longer than 1,024 bytes of UTF-8.
        case service
        /// A passphrase or recovery key cannot be limited to a part of the items.
        case slotScope
        /// The path of the agent's socket is longer than a socket's path may be.
        case socketPath
        /// The path of a vault does not end in a name of at most 200 bytes of UTF-8.
        case vaultName
        /// The name of a vault has an ending that its own files use.
        case vaultNameEnding
    }

    /// A resource that the program or the system lacks.
    @nonexhaustive
    public enum Shortage: String, CaseIterable, Hashable, Sendable {
        /// Room in the agent for commits that clients are sending.
        case commitRoom
        /// Memory to encrypt a secret for the keyring.
        case encryption
        /// Guarded memory for keys.
        case guardedMemory
        /// Room for another vault in the agent.
        case heldVaults
        /// Room in the log, which ends at 250 GiB.
        case logSize
        /// A thread to lock the vault at the end of its time.
        case memoryForPassphrase
        /// A thread that would lock the vault at the end of its time.
        case threadForLock
    }

    /// A step that took too long.
    @nonexhaustive
    public enum Deadline: String, CaseIterable, Hashable, Sendable {
        /// The agent did not take the connection.
        case agentConnection
        /// The agent still answers an earlier request of this client.
        case earlierRequest
        /// The export did not reach its end.
        case export
        /// The import did not begin to store.
        case importing
        /// Other processes kept changing the slots.
        case keybagChanges
        /// Other clients of the agent were listing.
        case listing
        /// The prompt of the keyring was not answered.
        case prompt
        /// Other clients of the agent were unlocking.
        case unlocking
        /// Another process was writing to the vault.
        case writer
    }

    /// A thing that is needed and is missing or unfinished.
    @nonexhaustive
    public enum Missing: String, CaseIterable, Hashable, Sendable {
        /// The migration was cancelled before its end.
        case cancelledMigration
        /// The vault has no such device.
        case device
        /// The file has no such earlier value of the item.
        case earlierValue
        /// No export is at the path.
        case export
        /// The vault was opened without a state directory.
        case stateDirectory
        /// The vault's directory was moved or replaced.
        case vaultDirectory
        /// This device knows no vault at the path.
        case vaultToForget
    }

    /// A place in the file system with an owner and a mode.
    @nonexhaustive
    public enum Place: Hashable, Sendable {
        /// The file or directory at the path.
        case path(String)
        /// The directory of a vault, by path.
        case vaultDirectory(String)
        /// The state directory.
        case stateDirectory
        /// A file at the path of a vault.
        case vaultPlace
        /// A file with tokens in plain text.
        case tokenFile
        /// The directory of a file with tokens in plain text.
        case tokenFileDirectory
    }

    /// A kind of file that is not a regular file.
    @nonexhaustive
    public enum FileKind: String, CaseIterable, Hashable, Sendable {
        /// A directory.
        case directory
        /// Another kind.
        case other
        /// A pipe, a socket or a device.
        case special
        /// A symbolic link.
        case symbolicLink
    }

    /// A thing that exists already.
    @nonexhaustive
    public enum Existing: String, CaseIterable, Hashable, Sendable {
        /// Another kind of file at the path of the agent's socket.
        case agentPlace
        /// A default keyring.
        case defaultKeyring
        /// The key of this device in the vault.
        case enrolment
        /// A keyring with that label.
        case keyringOfThatName
        /// A slot that the keyring opens.
        case keyringSlot
        /// Another vault at the path.
        case otherVault
        /// A file at the path of the new vault.
        case vaultFile
        /// A file at the path of the vault to forget.
        case vaultToForget
    }
}

extension TokenStorageError.Reason.SystemCall {
    /// Creates the call that ended with `failure`.
    package init(_ failure: SystemFailure) {
        self.init(name: failure.call, errorNumber: failure.errno.rawValue)
    }
}
