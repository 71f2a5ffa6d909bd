internal import SystemPackage
internal import TokenVaultPlatform

/// The text about an error's reason: the explanation goes into parentheses, the advice says what to do next.
struct ReasonText {
    var explanation: String?
    var advice: String?

    init(_ explanation: String? = nil, advice: String? = nil) {
        self.explanation = explanation
        self.advice = advice
    }
}

// The only place where a reason becomes text for users of the library.
extension TokenStorageError.Reason {
    /// Returns the text of the reason in an error with `code`.
    func text(_ code: TokenStorageError.Code) -> ReasonText {
        switch self {
        case .limit(let limit): limit.text
        case .tooManyChanges(let most): ReasonText(advice: "commit at most \(most) changes at once")
        case .other(let explanation, let advice): ReasonText(explanation, advice: advice)
        case .systemCall(let call):
            ReasonText(call.text, advice: code == .outcomeUnknown ? nil : call.advice)
        case .unknownOutcome(let cause): ReasonText(cause?.text(code).explanation)
        case .writingStopped(let call):
            ReasonText(
                call.text,
                advice:
                    "the disk failed; check it and try again: the next write moves the items to a new file")
        case .keybagNotWritten(let cause):
            ReasonText(
                cause?.text(code).explanation, advice: "the disk failed; check it and open the vault again")
        case .renameMayBeLost(let call):
            ReasonText(
                call.text,
                advice: "the copy is in place, but a power cut may undo that; check the disk")
        case .inputUnreadable(let number):
            ReasonText(
                "the input: \(Errno(rawValue: number).description)", advice: "check the source of the input")
        case .noLocks(let number):
            ReasonText(
                "the file system does not support locks (\(Errno(rawValue: number).description))",
                advice: "keep the vault on a local disk, or open it for reading only")
        case .deviceKeyUnreadable(let call):
            ReasonText(
                "the device key: \(call.text)",
                advice:
                    "make the device key readable; without it in the state directory, the vault opens without this-device-only items"
            )
        case .leaseFile(let call):
            ReasonText(
                "the lease file: \(call.text)",
                advice: "make its directory writable, or choose another path for it")
        case .choiceDirectory(let call):
            ReasonText(call?.text, advice: "check the directory of the remembered choices")
        case .placeNotRemembered(let cause):
            ReasonText(
                "the state directory\(Self.suffix(cause, code))",
                advice:
                    "the file is ready, but this device could not record it as the vault; repair the state "
                    + "directory and adopt the file again")
        case .shortage(let shortage): shortage.text
        case .derivationMemoryOfGroup(let needed, let left):
            ReasonText(
                "the passphrase needs \(needed) MiB of memory, and the control group has \(left) MiB left",
                advice: "raise its memory.max, or unlock with a key file")
        case .derivationMemory(let needed, let left):
            ReasonText(
                "the passphrase needs \(needed) MiB of memory, and \(left) MiB are available",
                advice: "close other programs, unlock with a key file, or bypass the agent with --no-agent")
        case .derivationMemoryInUse(let needed):
            ReasonText(
                "the passphrase needs \(needed) MiB of memory, which other unlocks use",
                advice: "try again when they are done")
        case .derivationTime(let milliseconds):
            ReasonText(
                "deriving the passphrase's key takes at least \(Double(milliseconds) / 1000) s, longer than the time left"
            )
        case .importUnfinished(let done, let all):
            ReasonText("\(done) of \(all) items are imported; the same import continues from there")
        case .deadline(let deadline): deadline.text

        case .vaultMissing(let path):
            ReasonText(
                "the vault file is gone: \(path)",
                advice:
                    "mount its disk, put it back, or unlock it at its new path; \"vaultctl restore\" uses a backup, "
                    + "\"vaultctl destroy --forget\" forgets the vault")
        case .noVault(let path):
            ReasonText("no such file: \(path)", advice: "create it first, or check the path")
        case .noDirectory(let path):
            ReasonText(
                "no such directory: \(path)", advice: "create the vault first, or check the path and HOME")
        case .noCopy(let path): ReasonText("no such file: \(path)", advice: "check the path")
        case .noVaultToMergeInto(let path):
            ReasonText("no such file: \(path)", advice: "\"vaultctl restore\" puts a copy in its place")
        case .missing(let missing): missing.text
        case .deviceKeyMissing(let path):
            ReasonText(path.map { "no device key at \($0)" } ?? "no state directory was given")
        case .noCandidate(let candidates):
            ReasonText(
                candidates.isEmpty
                    ? nil
                    : candidates.map { candidate in
                        let explanation = candidate.reason?.text(candidate.code).explanation
                        return "\(candidate.name): \(candidate.code.summary)"
                            + (explanation.map { " (\($0))" } ?? "")
                    }.joined(separator: "; "))
        case .chosenStorageMissing(let cause):
            ReasonText(
                cause?.text(code).explanation,
                advice:
                    "the tokens are in that storage: make it available again, or move them and choose again")
        case .directoryClosed(let path, let owner?, let place?):
            ReasonText(
                "\(path) is not accessible: \(place) belongs to \(ProcessFacts.name(ofUser: owner))",
                advice: Self.adviceForForeignPlace)
        case .directoryClosed(let path, _, _):
            ReasonText(
                "\(path) is not accessible",
                advice: "check its mode and the modes of the directories above it")

        case .ownedByAnotherUser(let place, let user):
            ReasonText(
                "\(place.subject) belongs to \(ProcessFacts.name(ofUser: user))",
                advice: Self.adviceForForeignPlace)
        case .writableByOthers(let place): place.textWhenWritable

        case .notARegularFile(let kind): kind.text
        case .occupied(let path):
            ReasonText(
                "the file in the vault's place",
                advice:
                    "move it away and try again: mv \(FilePath(path).shellWord) "
                    + "\(FilePath("\(path).aside").shellWord)")
        case .exists(let existing): existing.text
        case .hardLinks(let count, let path):
            ReasonText(
                "the vault file has \(count == 1 ? "another hard link" : "\(count) other hard links"), which would keep the old file",
                advice:
                    "find the other names: find \"$(stat --format=%m \(FilePath(path).shellWord))\" -xdev -samefile "
                    + "\(FilePath(path).shellWord); remove them, "
                    + "or replace them by copies, and try again")
        case .readOnly(let obstacle): obstacle.text

        case .damage(let part, let offset): ReasonText("\(part.name) at byte \(offset)")
        case .damaged(let damaged): damaged.text
        case .damagedCopy(let cause): ReasonText("the copy\(Self.suffix(cause, code))")
        case .damagedExport(let damage, let offset): damage.text(offset)
        case .newerFormat(let newer): newer.text
        case .damagedChoice(let file):
            ReasonText(advice: "remove \(file) from the directory of the remembered choices")

        case .replacedVault(let path): ReasonText("\(path) was replaced by another vault")
        case .otherVaultExpected(let path): ReasonText("this device expects another vault at \(path)")
        case .copyOfAnotherVault(let path):
            ReasonText(
                "\(path) is a copy of another vault",
                advice: "\"vaultctl export\" and \"vaultctl import\" bring items from one vault to another")
        case .vaultIsElsewhere(let path): ReasonText("the other path is \(path)")
        case .forkedBeyondMemory(let commits):
            ReasonText(
                "this device last saw the vault more than \(commits) commits ago, longer than the file's history",
                advice: "adopt this file on purpose if it is the newest")
        case .ancestry(let ancestry): ancestry.text

        case .changedMeanwhile(let changed): changed.text
        case .permission(let permission): permission.text
        case .slotWouldBeLost(let slots):
            ReasonText(
                "slot \(slots.map { "\($0.id) (\($0.kind.rawValue))" }.joined(separator: ", ")) would be lost",
                advice: "give its unlock method as well, or allow its removal")
        case .slotExists(let slot):
            ReasonText(
                "slot \(slot.id) (\(slot.kind.rawValue)) already has this unlock method",
                advice:
                    "choose another one; a duplicate slot would still open the vault when that slot is removed"
            )
        case .mistypedGroups(let groups):
            ReasonText(
                "group \(groups.map { "\($0)" }.joined(separator: ", ")) of the recovery key is mistyped",
                advice: "type it again")
        case .slots(let slots): slots.text
        case .passcodeItemsDeleted(let step, let cause):
            ReasonText(
                cause?.text(code).explanation,
                advice: step == .slotRemoval
                    ? "the items that need a passphrase are gone; remove the slot again"
                    : "the items that need a passphrase are gone; try again")
        case .itemsBoundToDevice(let count):
            ReasonText(
                "\(count) items may not leave this device",
                advice: "give them a portable policy, or allow them to stay behind")
        case .differingValues(let count?):
            ReasonText(
                "keys that have another value here: \(count)",
                advice: "nothing was imported; choose whether to skip or replace them")
        case .differingValues(nil):
            ReasonText(
                "a key has another value here",
                advice: "choose whether to skip or replace such keys")
        case .policyUnsupported(let alternative): alternative.text
        case .keptValues(let most): ReasonText("a vault keeps 0 to \(most) values")
        case .keyLeftInKeyring(let isForgotten, let cause):
            ReasonText(
                cause?.text(code).explanation,
                advice: isForgotten
                    ? "the vault is forgotten; its key is left in the keyring"
                    : "the vault is removed; its key is left in the keyring")

        case .noSessionBus(let said):
            ReasonText(
                said,
                advice: "there is no D-Bus session here: run inside a desktop session, or use the file vault")
        case .noSecretService(let said):
            ReasonText(
                said,
                advice:
                    "start a Secret Service (gnome-keyring-daemon, KWallet, KeePassXC), or use the file vault"
            )
        case .serviceDidNotStart(let said):
            ReasonText(said, advice: "the Secret Service did not start: see its log, or start it by hand")
        case .serviceEnded(let said):
            ReasonText(
                said, advice: "the Secret Service ended during the call: try again when it is back")
        case .noLibrary(let part):
            ReasonText(
                "dlopen: no \(part)",
                advice: "install libsecret (Debian and Ubuntu: libsecret-1-0), or use the file vault")
        case .busError(let said): ReasonText(said)
        case .busDenied(let said):
            ReasonText(
                said,
                advice: "the bus does not allow this call: check the permissions of the program's sandbox")
        case .writerNameDenied(let name, let said):
            ReasonText(said, advice: "a sandbox needs --own-name=\(name) to write to the keyring")
        case .onlyPromptedCreation(let said):
            ReasonText(
                said,
                advice: "this service creates keyrings only with its own prompt: leave the passphrase out")
        case .commitUnfinished(let cause):
            ReasonText(
                cause?.text(code).explanation,
                advice: "the next write finishes the commit: read the items after it")
        case .earlierCommitUnfinished(let cause):
            ReasonText(
                cause?.text(code).explanation, advice: "an earlier commit could not be finished: try again")
        case .unreadableCommit(let schema):
            ReasonText(
                "a commit of this service was left unfinished and cannot be read",
                advice: "delete the item of schema \(schema), which discards the changes of the commit")
        case .keyring(let keyring): keyring.text
        case .noSystemBus(let cause):
            ReasonText("no system bus: \(cause?.text(code).explanation ?? "logind does not answer")")

        case .agentDirectoryClosed:
            ReasonText(
                "the agent's directory cannot be entered",
                advice: "give a directory that belongs to this user, mode 0700"
            )
        case .agent(let agent): agent.text
        case .tooManyFilesForAgent(let call):
            ReasonText(call.text, advice: "close other files or programs")
        case .agentMissing(let call):
            ReasonText("no agent: \(call.text)", advice: "start it with \"vaultctl unlock\"")
        case .agentLost(let call):
            ReasonText("the agent went away: \(call.text)", advice: Agent.adviceToLook)
        case .agentSilent(let process):
            ReasonText(
                process.map { "the agent, process \($0), did not answer" } ?? "the agent did not answer",
                advice: "continue or end that process, or bypass the agent with --no-agent")
        case .agentDirectoryForeign(let part, let path):
            ReasonText(
                part.text(path), advice: "make it this user's alone, mode 0700, or remove it")
        case .agentDirectoryUnusable(let path, let call):
            ReasonText(
                "the directory \(path) cannot be \(call.name == "mkdir" ? "made" : "used"): "
                    + Errno(rawValue: call.errorNumber).description,
                advice: "set XDG_RUNTIME_DIR to a directory of yours, or unset it")
        case .agentSocketElsewhere(let expected):
            ReasonText(
                "the passed socket is not where clients look for the agent",
                advice: "have the service manager listen at \(expected)")
        case .agentOutcomeUnknown(let cause):
            ReasonText(
                cause?.text(code).explanation, advice: "check whether the write happened before you repeat it"
            )
        case .credential(let name, let credential): credential.text(name, code)
        }
    }

    /// Returns ": " and the explanation of `cause`; an empty text without a cause.
    static func suffix(_ cause: Self?, _ code: TokenStorageError.Code) -> String {
        cause?.text(code).explanation.map { ": \($0)" } ?? ""
    }

    /// The advice about a place that belongs to another user.
    static var adviceForForeignPlace: String {
        ProcessFacts.user == 0
            ? "run it as that user, without sudo, or give root's own paths: HOME, --vault, --state-dir"
            : "run it as that user, or check HOME and the given paths"
    }
}
