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
                advice: "the disk failed; check it and try again: what is there moves to a new file then")
        case .keybagNotWritten(let cause):
            ReasonText(
                cause?.text(code).explanation, advice: "the disk failed; check it and open the vault again")
        case .renameMayBeLost(let call):
            ReasonText(
                call.text,
                advice: "the copy is in the place, but a power cut may take that back; check the disk")
        case .inputUnreadable(let number):
            ReasonText(
                "what is read: \(Errno(rawValue: number).description)", advice: "check where it comes from")
        case .noLocks(let number):
            ReasonText(
                "the file system takes no locks (\(Errno(rawValue: number).description))",
                advice: "keep the vault on a local disk, or open it for reading only")
        case .deviceKeyUnreadable(let call):
            ReasonText(
                "the device key: \(call.text)",
                advice:
                    "make it readable; moved out of the state directory, the vault opens without what is for this device only"
            )
        case .leaseFile(let call):
            ReasonText(
                "the lease file: \(call.text)",
                advice: "make its directory writable, or name another place for it")
        case .choiceDirectory(let call):
            ReasonText(call?.text, advice: "check the directory that choices are remembered in")
        case .placeNotRemembered(let cause):
            ReasonText(
                "the state directory\(Self.suffix(cause, code))",
                advice:
                    "the file is ready, but this device does not know it for the vault; see to the state "
                    + "directory and adopt it again")
        case .shortage(let shortage): shortage.text
        case .derivationMemoryOfGroup(let needed, let left):
            ReasonText(
                "the passphrase takes \(needed) MiB, and the control group has \(left) MiB left",
                advice: "raise its memory.max, or unlock with a key file")
        case .derivationMemory(let needed, let left):
            ReasonText(
                "the passphrase takes \(needed) MiB, and there are \(left) MiB for it",
                advice: "end other programs, unlock with a key file, or leave the agent out with --no-agent")
        case .derivationMemoryInUse(let needed):
            ReasonText(
                "the passphrase takes \(needed) MiB, which other unlocks have",
                advice: "try again when they are done")
        case .derivationTime(let milliseconds):
            ReasonText(
                "deriving the passphrase's key takes at least \(Double(milliseconds) / 1000) s, which are not left"
            )
        case .importUnfinished(let done, let all):
            ReasonText("\(done) of \(all) items are done; the same import goes on from there")
        case .deadline(let deadline): deadline.text

        case .vaultMissing(let path):
            ReasonText(
                "the vault file is gone: \(path)",
                advice:
                    "mount its disk, put it back, or unlock it once where it is now; \"vaultctl restore\" puts a backup in "
                    + "its place, \"vaultctl destroy --forget\" forgets it")
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
                advice: "the tokens are kept there: make it available again, or move them and choose again")
        case .directoryClosed(let path, let owner?, let place?):
            ReasonText(
                "\(path) may not be looked into: \(place) belongs to \(ProcessFacts.name(ofUser: owner))",
                advice: Self.adviceForForeignPlace)
        case .directoryClosed(let path, _, _):
            ReasonText(
                "\(path) may not be looked into",
                advice: "check the modes of it and of the directories above it")

        case .ownedByAnotherUser(let place, let user):
            ReasonText(
                "\(place.subject) belongs to \(ProcessFacts.name(ofUser: user))",
                advice: Self.adviceForForeignPlace)
        case .writableByOthers(let place): place.textWhenWritable

        case .notARegularFile(let kind): kind.text
        case .occupied(let path):
            ReasonText(
                "what is in the vault's place",
                advice:
                    "move it away and try again, as with: mv \(FilePath(path).shellWord) "
                    + "\(FilePath("\(path).aside").shellWord)")
        case .exists(let existing): existing.text
        case .hardLinks(let count, let path):
            ReasonText(
                "the vault file has \(count == 1 ? "another name" : "\(count) other names"), a hard link, which would stay with the old file",
                advice:
                    "find what else it is called with: find / -xdev -samefile \(FilePath(path).shellWord); remove that name, "
                    + "or make it a copy, and try again")
        case .readOnly(let obstacle): obstacle.text

        case .damage(let part, let offset): ReasonText("\(part.name) at byte \(offset)")
        case .damaged(let damaged): damaged.text
        case .damagedCopy(let cause): ReasonText("the copy\(Self.suffix(cause, code))")
        case .damagedExport(let damage, let offset): damage.text(offset)
        case .newerFormat(let newer): newer.text
        case .damagedChoice(let file):
            ReasonText(advice: "remove \(file) from the directory that choices are remembered in")

        case .replacedVault(let path): ReasonText("\(path) was replaced by another one")
        case .otherVaultExpected(let path): ReasonText("this device expects another one at \(path)")
        case .copyOfAnotherVault(let path):
            ReasonText(
                "\(path) is a copy of another vault",
                advice: "\"vaultctl export\" and \"vaultctl import\" bring items from one vault to another")
        case .vaultIsElsewhere(let path): ReasonText("the other is \(path)")
        case .forkedBeyondMemory(let commits):
            ReasonText(
                "this device has seen the vault more than \(commits) commits ago, which is more than the file remembers",
                advice: "adopt this file on purpose if it is the newest")
        case .ancestry(let ancestry): ancestry.text

        case .changedMeanwhile(let changed): changed.text
        case .permission(let permission): permission.text
        case .slotWouldBeLost(let slots):
            ReasonText(
                "slot \(slots.map { "\($0.id) (\($0.kind.rawValue))" }.joined(separator: ", ")) would be lost",
                advice: "give what opens it as well, or say that it may go")
        case .slotExists(let slot):
            ReasonText(
                "slot \(slot.id) (\(slot.kind.rawValue)) opens with it already",
                advice: "choose another one; a second slot of the same would stay when that one is removed")
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
                advice: "give them a portable policy, or export without all-or-nothing")
        case .differingValues(let count?):
            ReasonText(
                "keys that have another value here: \(count)",
                advice: "nothing was imported; say whether to skip or replace them")
        case .differingValues(nil):
            ReasonText(
                "a key has another value here",
                advice: "nothing of this commit was imported; say whether to skip or replace such keys")
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
                said, advice: "the bus does not let this program do that: see its sandbox's permissions")
        case .writerNameDenied(let name, let said):
            ReasonText(said, advice: "a sandbox needs --own-name=\(name) to write to the keyring")
        case .onlyPromptedCreation(let said):
            ReasonText(
                said,
                advice: "this service makes keyrings with its own prompt alone: leave the passphrase out")
        case .commitUnfinished(let cause):
            ReasonText(
                cause?.text(code).explanation,
                advice: "it is finished by the next write: read the items then")
        case .earlierCommitUnfinished(let cause):
            ReasonText(
                cause?.text(code).explanation, advice: "an earlier commit could not be finished: try again")
        case .unreadableCommit(let schema):
            ReasonText(
                "a commit of this service was left unfinished and cannot be read",
                advice: "delete the item of schema \(schema), and its changes with it")
        case .keyring(let keyring): keyring.text
        case .noSystemBus(let cause):
            ReasonText("no system bus: \(cause?.text(code).explanation ?? "logind does not answer")")

        case .agentDirectoryClosed:
            ReasonText(
                "the agent's directory cannot be entered",
                advice: "name a directory of this user's, mode 0700"
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
                advice: "continue or end that process, or leave the agent out with --no-agent")
        case .agentDirectoryForeign(let part, let path):
            ReasonText(
                part.text(path), advice: "make it this user's alone, mode 0700, or remove it")
        case .agentDirectoryUnusable(let path, let call):
            ReasonText(
                "the directory \(path) cannot be \(call.name == "mkdir" ? "made" : "used"): "
                    + Errno(rawValue: call.errorNumber).description,
                advice: "check XDG_RUNTIME_DIR, which has to name a directory of yours, or unset it")
        case .agentSocketElsewhere(let expected):
            ReasonText(
                "the socket that was passed on is not where clients look for the agent",
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
            ? "run it as that user, without sudo, or name places of root's: HOME, --vault, --state-dir"
            : "run it as that user, or check HOME and the paths that were given"
    }
}
