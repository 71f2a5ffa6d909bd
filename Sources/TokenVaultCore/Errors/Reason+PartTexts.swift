internal import SystemPackage
internal import TokenVaultPlatform

// The texts of the parts of a reason that are about arguments, the system and places.

extension TokenStorageError.Reason.SystemCall {
    var text: String { "\(name): \(Errno(rawValue: errorNumber).description)" }

    /// The advice about the call's error, where it goes beyond the code's; `nil` otherwise.
    var advice: String? {
        switch Errno(rawValue: errorNumber) {
        case .fileTooLarge:
            "raise the limit on the size of files (\"ulimit -f\"), which is less than the vault needs"
        case .resourceBusy where name == "unlink" || name == "unlinkat":
            // A file that is itself a mount point can be neither replaced nor removed.
            "unmount the file, which is mounted by itself, and remove it then"
        case .resourceBusy:
            "mount the directory that the vault is in, not the file alone; or do this where the file is not mounted"
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
        case .attributeCount: ReasonText(advice: "an item takes 64 attributes")
        case .attributesLength: ReasonText(advice: "the attributes of an item are at most 60 KiB")
        case .candidate: ReasonText(advice: "name one of the candidates")
        case .candidateNames: ReasonText(advice: "each candidate needs a usable name of its own")
        case .commitLength: ReasonText(advice: "commit at most 32 MiB at once")
        case .cost: ReasonText(advice: "a cost is 3 to 12 passes over 64 MiB to 2 GiB")
        case .emptyKeyringPassphrase:
            ReasonText(
                "an empty passphrase", advice: "it would leave the keyring unencrypted: choose another")
        case .expiry: ReasonText(advice: "an expiry is in the years 1 to 9999")
        case .exportPath: ReasonText(advice: "give the path of a file, whose name is UTF-8")
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
                advice: "name it from the root, without links, and in 4,095 bytes at most")
        case .lockInterval: ReasonText(advice: "a vault locks itself after more than no time")
        case .mergedWithItself:
            ReasonText(advice: "the copy is the vault itself: give the path of another file")
        case .passphrase: ReasonText(advice: "a passphrase is not empty and at most 1 MiB")
        case .passphraseLikeRecoveryKey:
            ReasonText("the passphrase reads like a mistyped recovery key", advice: "choose another")
        case .prefix: ReasonText(advice: "a prefix is at most 1,024 bytes")
        case .recoveryKey: ReasonText(advice: "a recovery key is eight groups of five characters")
        case .reservedService:
            ReasonText(
                "a service that is set aside",
                advice: "it holds the keys of vaults: change a vault's slots instead")
        case .sameStorage: ReasonText(advice: "source and destination are the same")
        case .service: ReasonText(advice: "a service is at most 1,024 bytes of UTF-8")
        case .slotScope: ReasonText(advice: "a passphrase or recovery key opens everything")
        case .socketPath:
            ReasonText(
                "the path of the agent's directory is too long", advice: "name a shorter one: XDG_RUNTIME_DIR"
            )
        case .vaultName:
            ReasonText(advice: "the path of a vault ends in a name of UTF-8, at most 200 bytes of it")
        case .vaultNameEnding: ReasonText(advice: "a vault is not named .….new or ….torn")
        }
    }
}

extension TokenStorageError.Reason.Shortage {
    var text: ReasonText {
        switch self {
        case .commitRoom:
            ReasonText("the agent has no room for so much at once", advice: "commit less, or try again")
        case .encryption: ReasonText("secret_service_encode_dbus_secret")
        case .guardedMemory: ReasonText("no guarded memory")
        case .heldVaults:
            ReasonText(
                "the agent holds as many vaults as it may",
                advice: "end it with \"vaultctl agent --stop\", and unlock those that are used")
        case .logSize: ReasonText("a log of more than 250 GiB")
        case .memoryForPassphrase: ReasonText(advice: "free some memory: the passphrase's cost asks for it")
        case .threadForLock: ReasonText("no thread that would lock the vault")
        }
    }
}

extension TokenStorageError.Reason.Deadline {
    var text: ReasonText {
        switch self {
        case .agentConnection:
            ReasonText("the agent does not take the connection", advice: "try again, or restart the agent")
        case .earlierRequest:
            ReasonText(
                "it still answers what was asked before",
                advice: "wait, or end it with \"pkill vaultctl-agent\"")
        case .export: ReasonText("the export has not come to its end")
        case .importing: ReasonText("nothing was imported")
        case .keybagChanges:
            ReasonText(advice: "other processes keep changing the vault's slots; try again")
        case .listing: ReasonText("others are listing", advice: "try again")
        case .prompt: ReasonText("the prompt was not answered", advice: "unlock the keyring and try again")
        case .unlocking: ReasonText("others are unlocking", advice: "try again")
        case .writer: ReasonText(advice: "another process is writing; try again")
        }
    }
}

extension TokenStorageError.Reason.Missing {
    var text: ReasonText {
        switch self {
        case .cancelledMigration: ReasonText(advice: "run it again to go on")
        case .device: ReasonText("no such device", advice: "list the devices")
        case .earlierValue:
            ReasonText(
                "the file has no such earlier value of the item",
                advice:
                    "\"vaultctl history\" lists its values; a rename, a merge, a restore, compaction, and each deletion in a small vault remove earlier ones"
            )
        case .export: ReasonText("no such export", advice: "check its path")
        case .stateDirectory:
            ReasonText(
                "no state directory was given", advice: "open the vault with one that this device keeps")
        case .vaultDirectory:
            ReasonText(
                "the vault's directory was moved or replaced",
                advice: "put it back, or close the vault and open it where it is")
        case .vaultToForget:
            ReasonText(
                "this device knows no vault that was there",
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
            ReasonText(advice: "keep them out, with: chmod 600 \(FilePath(path).shellWord)")
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
                "others may have written the file",
                advice: "look at what is in it; if it is right, make it yours alone: chmod 600")
        case .tokenFileDirectory:
            ReasonText(
                "others may put files in its directory",
                advice: "take their right to write from the directory: chmod go-w")
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
                "something that is no socket of the agent is in its place",
                advice: "look at what it is, and remove it")
        case .defaultKeyring:
            ReasonText(
                "there is a default keyring", advice: "use that one, or choose a label for another keyring")
        case .enrolment: ReasonText("this device is enrolled", advice: "it can be used as it is")
        case .keyringOfThatName:
            ReasonText("there is a keyring of that name", advice: "choose another label")
        case .keyringSlot: ReasonText(advice: "the keyring opens this vault already")
        case .otherVault:
            ReasonText(
                "another vault is in the place",
                advice: "choose another path, or move that vault away and open it once where it is then")
        case .vaultFile: ReasonText(advice: "open it instead, or choose another path")
        case .vaultToForget:
            ReasonText(
                "there is a file in the vault's place",
                advice:
                    "only a vault that is gone can be forgotten; \"vaultctl destroy\" removes one that is there"
            )
        }
    }
}

extension TokenStorageError.Reason.ForeignAgent {
    /// Returns the problem with the agent's directory at `path`.
    func text(_ path: String) -> String {
        switch self {
        case .notADirectory: "the agent's directory \(path) is a link or no directory"
        case .ownedByAnotherUser: "the agent's directory \(path) is another user's"
        case .openToOthers: "others may look into the agent's directory \(path)"
        case .answeredByAnotherUser: "another user's program answers for the agent"
        case .socketOfAnotherUser: "the agent's socket is another user's"
        }
    }
}
