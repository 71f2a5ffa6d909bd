// The texts of the parts of a reason that are about a vault, a keyring or the agent.

extension TokenStorageError.Reason.DamagedPart {
    /// The name of the part, with its article.
    package var name: String {
        switch self {
        case .acknowledgedFrame: "a damaged frame that had been acknowledged"
        case .ancestryRecord: "an unreadable record of the vault's past"
        case .bytesAmongZeros: "bytes where there should be zeros"
        case .controlRecord: "a damaged control record"
        case .end: "the file ends"
        case .firstFrame: "an unreadable first frame"
        case .frame: "a damaged frame"
        case .frameBeforeWholeFrame: "a damaged frame in front of a whole one"
        case .frameEnd: "a damaged frame's end"
        case .frameOutOfPlace: "a frame out of place"
        case .index: "a damaged index"
        case .indexPage: "a damaged page of the index"
        case .indexPointer: "a damaged pointer to the index"
        case .item: "a damaged item"
        case .keybagCopy: "a damaged copy of the keybag"
        case .keybagRecord: "an unreadable keybag record"
        case .noFirstFrame: "no first frame"
        case .otherIndex: "an index that does not match the log"
        case .otherKeybagCopy: "a copy of the keybag that is not the one in use"
        case .pointerToNoIndex: "a pointer that leads to no index"
        case .replacedValue: "a damaged value that is no longer in use"
        case .unopenedControlRecord: "a control record that does not open"
        case .unopenedItem: "an item that does not open"
        case .value: "a damaged value"
        }
    }
}

extension TokenStorageError.Reason.Damaged {
    var text: ReasonText {
        switch self {
        case .bothKeybags: ReasonText("both copies of the keybag are damaged")
        case .bothKeybagsOfCopy:
            ReasonText(
                "both copies of the keybag are damaged, and nothing opens the rest",
                advice: "use another copy of the vault")
        case .exportedKeyTwice: ReasonText("the export has a key twice")
        case .item: ReasonText("a damaged item")
        case .keybag: ReasonText("the keybag does not authenticate")
        case .keybagInUse: ReasonText("no copy of the keybag is the one in use")
        case .keyringEncoding:
            ReasonText(
                "an item's secret does not match the encoding in its attributes", advice: "store it again")
        case .linesOfJSON:
            ReasonText(
                "not an export: the file begins like lines of JSON",
                advice: "import it with \"vaultctl import --format ndjson\"")
        case .migratedItem:
            ReasonText(
                advice: "the destination returns another value; the item was not deleted from the source")
        case .numbers:
            ReasonText(
                "its numbers are larger than those of any vault",
                advice:
                    "use another copy; for the vault itself, run \"vaultctl export\" and import the items into a new vault"
            )
        case .secretNotReadBack: ReasonText("a secret that was read back differs from the stored one")
        case .tokenFile:
            ReasonText(
                "no secrets could be read from the file",
                advice: "the file was not changed; remove it if you do not need it")
        }
    }
}

extension TokenStorageError.Reason.ExportDamage {
    func text(_ offset: Int?) -> ReasonText {
        let (what, preposition) =
            switch self {
            case .cutOff: ("cut off", "at")
            case .cutOffOrDamaged: ("cut off or damaged", "at")
            case .damagedItem: ("a damaged item", "before")
            case .notAnExport: ("not an export, or cut short", "at")
            case .unexpectedEnd: ("an unexpected end", "at")
            case .unreadableItem: ("an unreadable item", "before")
            }
        let place = offset.map { " \(preposition) byte \($0)" } ?? ""
        return ReasonText("the export: \(what)\(place)", advice: "export again, or use another copy of it")
    }
}

extension TokenStorageError.Reason.Newer {
    var text: ReasonText {
        switch self {
        case .export: ReasonText("the export", advice: "use a newer version")
        case .frameHeader: ReasonText("an unknown frame header")
        case .keyClass: ReasonText("an unknown class of keys")
        case .keyringCommit:
            ReasonText(
                "a newer TokenVault left a commit of this service unfinished",
                advice: "use the newer version; its next write finishes the commit")
        case .keyringItem: ReasonText(advice: "a newer version stored this item")
        case .record: ReasonText("an unknown record")
        }
    }
}

extension TokenStorageError.Reason.Ancestry {
    var text: ReasonText {
        switch self {
        case .becameElsewhere:
            ReasonText(
                "another file has become the vault meanwhile",
                advice:
                    "open the vault at its new path; to use this file instead, run \"vaultctl adopt\"")
        case .keysRotatedInCopy:
            ReasonText(
                "the copy's keys were rotated",
                advice: "run \"vaultctl restore COPY\", then merge the file that the copy replaced")
        case .neitherHasAll:
            ReasonText(
                "neither of the two files has the changes that this device has seen",
                advice: "merge the file that has them, or accept the vault with \"vaultctl adopt\"")
        case .nothingInCommon:
            ReasonText(
                "the two files have no commit in common",
                advice: "\"vaultctl export\" and \"vaultctl import\" bring items from one to the other")
        case .readOnlyCopy: ReasonText("a copy can only be read")
        case .removedDeviceInCopy:
            ReasonText(
                "the copy's keys were rotated, and the copy has a device that the vault has removed",
                advice:
                    "on the copy's own device, run \"vaultctl device remove DEVICE\" (see \"vaultctl device list\"), then merge here again"
            )
        case .slotReplacedInCopy:
            ReasonText(
                "a slot of the vault was replaced in the copy, and the keys rotated",
                advice:
                    "the newer slot wins: run \"vaultctl restore COPY\", then merge the file that the copy replaced"
            )
        case .slotRemovedInCopy:
            ReasonText(
                "a slot of the vault was removed in the copy, and the keys rotated",
                advice:
                    "remove it here as well: \"vaultctl slot remove NUMBER --revoke\"; \"vaultctl slot list\" shows the numbers"
            )
        case .tooManyLeft:
            ReasonText(
                "the copy would keep more items than a merged file can note",
                advice: "merge the two files on the device that stored these items")
        case .tookPlace: ReasonText("another file took the vault's place")
        case .unrelatedKeys:
            ReasonText(
                "its keys do not descend from those that this device knows; a removed unlock method may have put old keys back",
                advice:
                    "put the newest file back; only after a restore elsewhere or more than 8 key rotations, run \"vaultctl adopt\" and \"vaultctl slot list\""
            )
        }
    }
}

extension TokenStorageError.Reason.Changed {
    var text: ReasonText {
        switch self {
        case .copy:
            ReasonText(
                "its unlock methods or devices were changed meanwhile, or it was merged", advice: "try again"
            )
        case .copyFile: ReasonText("the copy was replaced", advice: "try again")
        case .destination: ReasonText(advice: "choose whether to skip or to replace what is there")
        case .keybag: ReasonText(advice: "another process changed the keybag; try again")
        case .keyringCommits: ReasonText("other programs keep changing the keyring", advice: "try again")
        case .keyringItem: ReasonText("another program deleted the item meanwhile", advice: "try again")
        case .keyringItems: ReasonText("other programs keep adding and deleting items", advice: "try again")
        case .keyringReplaced:
            ReasonText(
                "the keyring was deleted, or another one made the default, during the call",
                advice: "try again")
        case .keyringSession: ReasonText("org.freedesktop.Secret.Error.NoSession", advice: "try again")
        case .keys: ReasonText("its keys were replaced meanwhile", advice: "unlock it again")
        case .lockedAgain: ReasonText("it was locked again meanwhile")
        case .otherAgent: ReasonText("another agent is running", advice: "use that one, or end it first")
        case .passphrase: ReasonText(advice: "the passphrase was changed meanwhile")
        case .passphraseAdded:
            ReasonText(advice: "a passphrase was added meanwhile; unlock with it first")
        case .root: ReasonText(advice: "the vault's root key was replaced meanwhile; unlock the vault again")
        case .slotAdded: ReasonText(advice: "another slot was added meanwhile; try again")
        case .slots: ReasonText(advice: "the slots were changed meanwhile; try again")
        case .storedSecret:
            ReasonText(
                "the storage has another secret under a key of the file",
                advice: "choose whether to keep or to replace the stored secret")
        case .tokenFile:
            ReasonText(
                "the file changed while it was adopted",
                advice: "end the programs that still write to it, and try again")
        }
    }
}

extension TokenStorageError.Reason.Permission {
    var text: ReasonText {
        switch self {
        case .agentFork: ReasonText("the process forked", advice: "connect to the agent again in the child")
        case .changeRecoveryKey:
            ReasonText(
                "a recovery key cannot be changed",
                advice: "remove the slot of the lost passphrase and add a new one")
        case .everything:
            ReasonText(
                advice: "unlock with a passphrase, a recovery key or another slot that opens everything")
        case .fork: ReasonText("the process forked", advice: "open the vault again in the child")
        case .item: ReasonText(advice: "unlock with a passphrase, or another slot that opens this item")
        case .itemOfAnotherProgram:
            ReasonText("another program made the item", advice: "delete it with that program")
        case .lastFullSlot:
            ReasonText(
                "the other slots open only after-first-unlock items",
                advice: "first add another slot that opens everything")
        case .passcodeItems: ReasonText(advice: "unlock with a passphrase")
        case .passphraseToReplace:
            ReasonText(
                advice: "unlock with the existing passphrase; if it is lost, remove its slot first")
        case .plainSession:
            ReasonText(
                "the service offers no encrypted session",
                advice: "allow plain sessions if every program on this bus may see the secrets")
        case .storing:
            ReasonText(
                advice: "unlock with a passphrase, or choose an after-first-unlock policy")
        }
    }
}

extension TokenStorageError.Reason.Slots {
    var text: ReasonText {
        switch self {
        case .devicesFull: ReasonText("too many devices are enrolled", advice: "remove a device first")
        case .devicesOfBothFiles: ReasonText("the devices of both files do not fit into one")
        case .keysFull:
            ReasonText(
                "the keys of the vault leave no room",
                advice:
                    "run \"vaultctl compact\" on each device that writes to it, or remove a slot or a device")
        case .keyringGivesOtherKey: ReasonText("the keyring returns another key than the stored one")
        case .keyringHasNoKey:
            ReasonText(
                "the keyring has no key of this vault",
                advice: "unlock it another way, and add a slot for this keyring")
        case .passphraseOfExport: ReasonText(advice: "give the passphrase that the export was made with")
        }
    }
}

extension TokenStorageError.Reason.Alternative {
    var text: ReasonText {
        switch self {
        case .policy(let policy): ReasonText(advice: "use \(policy.rawValue), or another supported policy")
        case .afterPassphrase:
            ReasonText(advice: "add a passphrase first; removing it deletes the items of this policy")
        case .afterEnrolment:
            ReasonText(
                advice:
                    "this device has no key in the vault; enrol it (\"vaultctl device enrol\"), or use when-unlocked or "
                    + "after-first-unlock")
        case .afterNewEnrolment:
            ReasonText(
                "this device's passcode key is missing",
                advice:
                    "put its state directory back; or run \"vaultctl device remove\", which deletes the items that only it can "
                    + "read, and then \"vaultctl device enrol\"")
        case .fileVault:
            ReasonText(advice: "a keyring keeps when-unlocked only; the file vault keeps every policy")
        }
    }
}

extension TokenStorageError.Reason.Keyring {
    var text: ReasonText {
        switch self {
        case .busLost:
            ReasonText(
                "the connection to the session bus was lost",
                advice: "try again when the desktop session is back")
        case .creationDismissed:
            ReasonText(
                "the prompt for a new keyring was dismissed, or could not be shown",
                advice: "give its passphrase: \"vaultctl keyring create --passphrase-file FILE\"")
        case .foreignSession:
            ReasonText(
                "the Secret Service answers for another session than this one",
                advice: "stop the Secret Service and start it again")
        case .locked: ReasonText(advice: "unlock the keyring, or allow prompts, and try again")
        case .noDefault:
            ReasonText(
                "the Secret Service has no default keyring",
                advice: "create one with \"vaultctl keyring create\"")
        case .noneOfThatName:
            ReasonText(
                "there is no keyring of that name",
                advice: "create it with \"vaultctl keyring create --label NAME\"")
        case .promptDismissed:
            ReasonText(
                "the prompt was dismissed, or could not be shown",
                advice: "the keyring stays locked until the user unlocks it")
        case .unexpectedAnswer:
            ReasonText("the Secret Service's answer does not match its interface")
        }
    }
}

extension TokenStorageError.Reason.Agent {
    static let adviceToLook = "check whether the agent runs: \"vaultctl status\""

    var text: ReasonText {
        switch self {
        case .directoryLocked:
            ReasonText(
                "another program keeps the agent's directory locked",
                advice: "end that program; \"fuser DIRECTORY\" shows its process")
        case .doesNotHoldVault:
            ReasonText("the agent does not hold the vault", advice: "run \"vaultctl unlock\"")
        case .endedConnection: ReasonText("the agent ended the connection", advice: Self.adviceToLook)
        case .notListening:
            ReasonText(
                "an agent runs but does not listen at its socket",
                advice: "end it with \"pkill vaultctl-agent\", and unlock again")
        case .otherVersion:
            ReasonText("the agent speaks another version of the protocol", advice: Self.adviceToLook)
        case .unreadableAnswer: ReasonText("the agent's answer cannot be read", advice: Self.adviceToLook)
        }
    }
}

extension TokenStorageError.Reason.Credential {
    func text(_ name: String, _ code: TokenStorageError.Code) -> ReasonText {
        let advice = "give the unit the credential: LoadCredential=\(name):PATH"
        return switch self {
        case .noDirectory: ReasonText("CREDENTIALS_DIRECTORY is not set", advice: advice)
        case .notAFile: ReasonText("the unit's credential \(name) is not a file", advice: advice)
        case .unreadable(let cause):
            ReasonText(
                "the unit's credential \(name)\(TokenStorageError.Reason.suffix(cause, code))",
                advice: advice)
        case .noSlot:
            ReasonText(
                "no slot of the vault has the credential \(name)",
                advice: "in a unit that has it, run \"vaultctl slot add systemd-credential \(name)\"")
        }
    }
}

extension ReadOnlyReason {
    var text: ReasonText {
        switch self {
        case .requested:
            ReasonText("the vault was opened for reading only", advice: "open it for writing as well")
        case .fileSystem:
            ReasonText(
                "the vault is on a read-only file system",
                advice: "mount it writable, or copy the vault to a writable one")
        case .permissions:
            ReasonText(
                "this user may not write to the vault file",
                advice: "run chmod 600 on it, and open it again")
        }
    }
}
