internal import SystemPackage
internal import TokenVaultPlatform

// The texts of the parts of a reason that are about arguments, the system and places.

extension TokenStorageError.Reason.SystemCall {
    var text: String { "\(name): \(Errno(rawValue: errorNumber).description)" }

    /// The advice about the call's error, where it goes beyond the code's; `nil` otherwise.
    var advice: String? {
        switch Errno(rawValue: errorNumber) {
        case .fileTooLarge:
            "raise the limit on the size of files (\"ulimit -f\"): the vault needs more"
        case .resourceBusy where name == "unlink" || name == "unlinkat":
            // A file that is itself a mount point can be neither replaced nor removed.
            "unmount the file, which is a mount point, then remove it"
        case .resourceBusy:
            "mount the vault's directory instead of the file, or run this where the file is not mounted"
        default: nil
        }
    }
}

extension TokenStorageError.Reason.Limit {
    var text: ReasonText {
        switch self {
        case .account: ReasonText(advice: "an account is 1 to 1,000 bytes of UTF-8")
        case .attribute:
            ReasonText(advice: "an attribute's name and value are at most 1,024 bytes of UTF-8")
        case .attributeCount: ReasonText(advice: "an item has at most 64 attributes")
        case .attributesLength: ReasonText(advice: "the attributes of an item are at most 60 KiB")
        case .candidate: ReasonText(advice: "name one of the candidates")
        case .candidateNames: ReasonText(advice: "each candidate needs a usable, unique name")
        case .commitLength: ReasonText(advice: "commit at most 32 MiB at once")
        case .cost: ReasonText(advice: "a cost is 3 to 12 passes over 64 MiB to 2 GiB")
        case .emptyKeyringPassphrase:
            ReasonText(
                "an empty passphrase", advice: "it would leave the keyring unencrypted: choose another")
        case .expiry: ReasonText(advice: "an expiry is in the years 1 to 9999")
        case .exportPath: ReasonText(advice: "give the path of a file with a name in UTF-8")
        case .filePath: ReasonText(advice: "give the path of a file")
        case .fileOfTokens: ReasonText("a file of tokens has at most 16 MiB")
        case .importedKeyTwice: ReasonText(advice: "an import stores each key once")
        case .itemSize: ReasonText(advice: "see the limits of an item")
        case .keyFile: ReasonText(advice: "a key file has 32 to 4,096 bytes")
        case .keyTwice: ReasonText(advice: "a commit changes each key once")
        case .keyringKey: ReasonText(advice: "a keyring's key has 32 bytes")
        case .keyringLabel:
            ReasonText("a label that is empty, or has control characters", advice: "choose another")
        case .keptGeneration:
            ReasonText(
                "the item has this value now", advice: "take another generation from the item's history")
        case .label: ReasonText(advice: "a label is at most 1,024 bytes without control characters")
        case .linkedPath:
            ReasonText(
                "the vault's path leads through a link, or is too long",
                advice: "give an absolute path without links, at most 4,095 bytes long")
        case .lockInterval: ReasonText(advice: "the time until a vault locks itself must be longer than zero")
        case .mergedWithItself:
            ReasonText(advice: "the copy is the vault itself: give the path of another file")
        case .passphrase: ReasonText(advice: "a passphrase is not empty and at most 1 MiB")
        case .passphraseLikeRecoveryKey:
            ReasonText("the passphrase reads like a mistyped recovery key", advice: "choose another")
        case .prefix: ReasonText(advice: "a prefix is at most 1,024 bytes")
        case .recoveryKey: ReasonText(advice: "a recovery key is eight groups of five characters")
        case .reservedService:
            ReasonText(
                "a reserved service",
                advice: "it holds the keys of vaults: change a vault's slots instead")
        case .sameStorage: ReasonText(advice: "source and destination are the same")
        case .service: ReasonText(advice: "a service is at most 1,024 bytes of UTF-8")
        case .slotScope: ReasonText(advice: "a passphrase or recovery key opens everything")
        case .socketPath:
            ReasonText(
                "the path of the agent's directory is too long",
                advice: "set XDG_RUNTIME_DIR to a shorter path"
            )
        case .vaultName:
            ReasonText(advice: "the name of a vault file is UTF-8, at most 200 bytes")
        case .vaultNameEnding: ReasonText(advice: "choose another name: .….new and ….torn are reserved")
        }
    }
}

extension TokenStorageError.Reason.Shortage {
    var text: ReasonText {
        switch self {
        case .commitRoom:
            ReasonText("the agent has no room for a commit of this size", advice: "commit less, or try again")
        case .encryption: ReasonText("secret_service_encode_dbus_secret")
        case .guardedMemory: ReasonText("no guarded memory")
        case .heldVaults:
            ReasonText(
                "the agent cannot hold another vault",
                advice: "end it with \"vaultctl agent --stop\", and unlock the vaults in use")
        case .logSize: ReasonText("a log of more than 250 GiB")
        case .memoryForPassphrase: ReasonText(advice: "free some memory: the passphrase's cost needs it")
        case .threadForLock: ReasonText("no thread for locking the vault")
        }
    }
}

extension TokenStorageError.Reason.Deadline {
    var text: ReasonText {
        switch self {
        case .agentConnection:
            ReasonText("the agent does not accept the connection", advice: "try again, or restart the agent")
        case .earlierRequest:
            ReasonText(
                "the agent still answers an earlier request",
                advice: "wait, or end it with \"pkill vaultctl-agent\"")
        case .export: ReasonText("the export is not complete")
        case .importing: ReasonText("nothing was imported")
        case .keybagChanges:
            ReasonText(advice: "other processes keep changing the vault's slots; try again")
        case .listing: ReasonText("other callers are listing", advice: "try again")
        case .prompt: ReasonText("the prompt was not answered", advice: "unlock the keyring and try again")
        case .unlocking: ReasonText("other callers are unlocking", advice: "try again")
        case .writer: ReasonText(advice: "another process is writing; try again")
        }
    }
}

extension TokenStorageError.Reason.Missing {
    var text: ReasonText {
        switch self {
        case .cancelledMigration: ReasonText(advice: "run the migration again to continue")
        case .device: ReasonText("no such device", advice: "list the devices")
        case .earlierValue:
            ReasonText(
                "the file does not have this earlier value of the item",
                advice:
                    "\"vaultctl history\" lists its values; a rename, a merge, a restore, compaction, and each deletion in a small vault remove earlier ones"
            )
        case .export: ReasonText("no such export", advice: "check its path")
        case .stateDirectory:
            ReasonText(
                "no state directory was given", advice: "open the vault with this device's state directory")
        case .vaultDirectory:
            ReasonText(
                "the vault's directory was moved or replaced",
                advice: "put it back, or close the vault and open it at its new path")
        case .vaultToForget:
            ReasonText(
                "this device remembers no vault at that path",
                advice: "check --vault and --state-dir; \"vaultctl init\" makes a vault there")
        }
    }
}

extension TokenStorageError.Reason.Place {
    /// The place's name in an error.
    var subject: String {
        switch self {
        case .path(let path): path
        case .vaultDirectory: "the vault's directory"
        case .stateDirectory: "the state directory"
        case .vaultPlace: "the file in the vault's place"
        case .tokenFile: "the file"
        case .tokenFileDirectory: "its directory"
        }
    }

    var textWhenWritable: ReasonText {
        switch self {
        case .path(let path):
            ReasonText(advice: "run chmod 600 \(FilePath(path).shellWord)")
        case .vaultDirectory(let path):
            ReasonText(
                "every user may replace files in the vault's directory",
                advice: "make the directory yours alone: chmod go-w \(FilePath(path).shellWord)")
        case .stateDirectory:
            ReasonText(
                "the state directory", advice: "make the state directory yours alone: chmod 700 on it")
        case .vaultPlace: ReasonText("the file in the vault's place")
        case .tokenFile:
            ReasonText(
                "other users may have changed the file",
                advice: "check its contents; if they are right, make it yours alone: chmod 600")
        case .tokenFileDirectory:
            ReasonText(
                "other users may put files in its directory",
                advice: "remove their write permission on the directory: chmod go-w")
        }
    }
}

extension TokenStorageError.Reason.FileKind {
    var text: ReasonText {
        switch self {
        case .directory: ReasonText("a directory")
        case .special: ReasonText("a pipe, a socket or a device")
        case .symbolicLink: ReasonText("a symbolic link", advice: "give the path it leads to")
        case .other: ReasonText("not a regular file")
        }
    }
}

extension TokenStorageError.Reason.Existing {
    var text: ReasonText {
        switch self {
        case .agentPlace:
            ReasonText(
                "a file that is not the agent's socket is in its place",
                advice: "check what the file is, and remove it")
        case .defaultKeyring:
            ReasonText(
                "there is a default keyring", advice: "use that one, or choose a label for another keyring")
        case .enrolment: ReasonText("this device is enrolled", advice: "there is nothing to do")
        case .keyringOfThatName:
            ReasonText("there is a keyring of that name", advice: "choose another label")
        case .keyringSlot: ReasonText(advice: "the keyring opens this vault already")
        case .otherVault:
            ReasonText(
                "another vault is in the place",
                advice: "choose another path, or move that vault away and open it once at its new path")
        case .vaultFile: ReasonText(advice: "open it instead, or choose another path")
        case .vaultToForget:
            ReasonText(
                "there is a file in the vault's place",
                advice:
                    "only a missing vault can be forgotten; \"vaultctl destroy\" removes an existing one"
            )
        }
    }
}

extension TokenStorageError.Reason.ForeignAgent {
    /// Returns the problem with the agent's directory at `path`.
    func text(_ path: String) -> String {
        switch self {
        case .notADirectory: "the agent's directory \(path) is a link or not a directory"
        case .ownedByAnotherUser: "the agent's directory \(path) is another user's"
        case .openToOthers: "other users can look into the agent's directory \(path)"
        case .answeredByAnotherUser: "another user's program answers in the agent's place"
        case .socketOfAnotherUser: "the agent's socket is another user's"
        }
    }
}
