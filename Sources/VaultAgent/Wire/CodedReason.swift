package import TokenVault

/// A reason in its encoded form: its name and its values.
package struct CodedReason: Equatable {
    package enum Value: Equatable {
        case number(Int64)
        case text(String)
        case reason(CodedReason)
        /// A value that is `nil`.
        case none
    }

    package var name: String
    package var values: [Value]

    init(_ name: String, _ values: Value...) {
        self.name = name
        self.values = values
    }

    package init(name: String, values: [Value]) {
        self.name = name
        self.values = values
    }

    private typealias Reason = TokenStorageError.Reason

    package init(_ reason: TokenStorageError.Reason) {
        self =
            switch reason {
            case .limit(let part): Self("limit", .raw(part))
            case .tooManyChanges(let most): Self("tooManyChanges", .count(most))
            case .other(let explanation, let advice): Self("other", .optional(explanation), .optional(advice))
            case .systemCall(let call): Self("systemCall", call)
            case .unknownOutcome(let cause): Self("unknownOutcome", .cause(cause))
            case .writingStopped(let call): Self("writingStopped", call)
            case .keybagNotWritten(let cause): Self("keybagNotWritten", .cause(cause))
            case .renameMayBeLost(let call): Self("renameMayBeLost", call)
            case .inputUnreadable(let number): Self("inputUnreadable", .number(Int64(number)))
            case .noLocks(let number): Self("noLocks", .number(Int64(number)))
            case .deviceKeyUnreadable(let call): Self("deviceKeyUnreadable", call)
            case .leaseFile(let call): Self("leaseFile", call)
            case .choiceDirectory(let call?): Self("choiceDirectory", call)
            case .choiceDirectory(nil): Self("choiceDirectory", .none)
            case .placeNotRemembered(let cause): Self("placeNotRemembered", .cause(cause))
            case .shortage(let part): Self("shortage", .raw(part))
            case .derivationMemoryOfGroup(let needed, let left):
                Self("derivationMemoryOfGroup", .count(needed), .count(left))
            case .derivationMemory(let needed, let left):
                Self("derivationMemory", .count(needed), .count(left))
            case .derivationMemoryInUse(let needed): Self("derivationMemoryInUse", .count(needed))
            case .derivationTime(let milliseconds): Self("derivationTime", .count(milliseconds))
            case .importUnfinished(let done, let all): Self("importUnfinished", .count(done), .count(all))
            case .deadline(let part): Self("deadline", .raw(part))
            case .vaultMissing(let path): Self("vaultMissing", .text(path))
            case .noVault(let path): Self("noVault", .text(path))
            case .noDirectory(let path): Self("noDirectory", .text(path))
            case .noCopy(let path): Self("noCopy", .text(path))
            case .noVaultToMergeInto(let path): Self("noVaultToMergeInto", .text(path))
            case .missing(let part): Self("missing", .raw(part))
            case .deviceKeyMissing(let path): Self("deviceKeyMissing", .optional(path))
            case .noCandidate(let candidates):
                Self(
                    name: "noCandidate",
                    values: candidates.flatMap { [.text($0.name), .raw($0.code), .cause($0.reason)] })
            case .chosenStorageMissing(let cause): Self("chosenStorageMissing", .cause(cause))
            case .directoryClosed(let path, let owner, let place):
                Self(
                    "directoryClosed", .text(path), owner.map { .number(Int64($0)) } ?? .none,
                    .optional(place))
            case .ownedByAnotherUser(let place, let user):
                Self("ownedByAnotherUser", .number(Int64(user)), place.coded.0, place.coded.1)
            case .writableByOthers(let place): Self("writableByOthers", place.coded.0, place.coded.1)
            case .notARegularFile(let part): Self("notARegularFile", .raw(part))
            case .occupied(let path): Self("occupied", .text(path))
            case .exists(let part): Self("exists", .raw(part))
            case .hardLinks(let count, let path): Self("hardLinks", .count(count), .text(path))
            case .readOnly(let obstacle): Self("readOnly", .raw(obstacle))
            case .damage(let part, let offset): Self("damage", .raw(part), .count(offset))
            case .damaged(let part): Self("damaged", .raw(part))
            case .damagedCopy(let cause): Self("damagedCopy", .cause(cause))
            case .damagedExport(let damage, let offset):
                Self("damagedExport", .raw(damage), offset.map { .count($0) } ?? .none)
            case .newerFormat(let part): Self("newerFormat", .raw(part))
            case .damagedChoice(let file): Self("damagedChoice", .text(file))
            case .replacedVault(let path): Self("replacedVault", .text(path))
            case .otherVaultExpected(let path): Self("otherVaultExpected", .text(path))
            case .copyOfAnotherVault(let path): Self("copyOfAnotherVault", .text(path))
            case .vaultIsElsewhere(let path): Self("vaultIsElsewhere", .text(path))
            case .forkedBeyondMemory(let commits): Self("forkedBeyondMemory", .count(commits))
            case .ancestry(let part): Self("ancestry", .raw(part))
            case .changedMeanwhile(let part): Self("changedMeanwhile", .raw(part))
            case .permission(let part): Self("permission", .raw(part))
            case .slotWouldBeLost(let slots):
                Self(
                    name: "slotWouldBeLost",
                    values: slots.flatMap { [.count($0.id), .raw($0.kind)] })
            case .slotExists(let slot): Self("slotExists", .count(slot.id), .raw(slot.kind))
            case .mistypedGroups(let groups):
                Self(name: "mistypedGroups", values: groups.map { .count($0) })
            case .slots(let part): Self("slots", .raw(part))
            case .passcodeItemsDeleted(let step, let cause):
                Self("passcodeItemsDeleted", .raw(step), .cause(cause))
            case .itemsBoundToDevice(let count): Self("itemsBoundToDevice", .count(count))
            case .differingValues(let count): Self("differingValues", count.map { .count($0) } ?? .none)
            case .policyUnsupported(let alternative):
                Self(name: "policyUnsupported", values: alternative.coded)
            case .keptValues(let most): Self("keptValues", .count(most))
            case .keyLeftInKeyring(let isForgotten, let cause):
                Self("keyLeftInKeyring", .number(isForgotten ? 1 : 0), .cause(cause))
            case .noSessionBus(let said): Self("noSessionBus", .text(said))
            case .noSecretService(let said): Self("noSecretService", .text(said))
            case .serviceDidNotStart(let said): Self("serviceDidNotStart", .text(said))
            case .serviceEnded(let said): Self("serviceEnded", .text(said))
            case .noLibrary(let part): Self("noLibrary", .text(part))
            case .busError(let said): Self("busError", .text(said))
            case .busDenied(let said): Self("busDenied", .text(said))
            case .writerNameDenied(let name, let said): Self("writerNameDenied", .text(name), .text(said))
            case .onlyPromptedCreation(let said): Self("onlyPromptedCreation", .text(said))
            case .commitUnfinished(let cause): Self("commitUnfinished", .cause(cause))
            case .earlierCommitUnfinished(let cause): Self("earlierCommitUnfinished", .cause(cause))
            case .unreadableCommit(let schema): Self("unreadableCommit", .text(schema))
            case .keyring(let part): Self("keyring", .raw(part))
            case .noSystemBus(let cause): Self("noSystemBus", .cause(cause))
            case .agentDirectoryClosed: Self("agentDirectoryClosed")
            case .agent(let part): Self("agent", .raw(part))
            case .tooManyFilesForAgent(let call): Self("tooManyFilesForAgent", call)
            case .agentMissing(let call): Self("agentMissing", call)
            case .agentLost(let call): Self("agentLost", call)
            case .agentSilent(let process):
                Self("agentSilent", process.map { .number(Int64($0)) } ?? .none)
            case .agentDirectoryForeign(let part, let path):
                Self("agentDirectoryForeign", .raw(part), .text(path))
            case .agentDirectoryUnusable(let path, let call):
                Self(
                    "agentDirectoryUnusable", .text(call.name), .number(Int64(call.errorNumber)), .text(path))
            case .agentSocketElsewhere(let expected): Self("agentSocketElsewhere", .text(expected))
            case .agentOutcomeUnknown(let cause): Self("agentOutcomeUnknown", .cause(cause))
            case .credential(let name, let credential):
                Self(name: "credential", values: [.text(name)] + credential.coded)
            }
    }

    private init(_ name: String, _ call: TokenStorageError.Reason.SystemCall) {
        self.init(name, .text(call.name), .number(Int64(call.errorNumber)))
    }
}

extension CodedReason.Value {
    static func raw<Part: RawRepresentable>(_ part: Part) -> Self where Part.RawValue == String {
        .text(part.rawValue)
    }

    static func optional(_ text: String?) -> Self { text.map { .text($0) } ?? .none }

    static func count(_ count: Int) -> Self { .number(Int64(count)) }

    static func cause(_ reason: TokenStorageError.Reason?) -> Self {
        reason.map { .reason(CodedReason($0)) } ?? .none
    }
}

extension TokenStorageError.Reason.Place {
    fileprivate var coded: (CodedReason.Value, CodedReason.Value) {
        switch self {
        case .path(let path): (.text("path"), .text(path))
        case .vaultDirectory(let path): (.text("vaultDirectory"), .text(path))
        case .stateDirectory: (.text("stateDirectory"), .none)
        case .vaultPlace: (.text("vaultPlace"), .none)
        case .tokenFile: (.text("tokenFile"), .none)
        case .tokenFileDirectory: (.text("tokenFileDirectory"), .none)
        }
    }
}

extension TokenStorageError.Reason.Alternative {
    fileprivate var coded: [CodedReason.Value] {
        switch self {
        case .policy(let policy): [.text("policy"), .text(policy.rawValue)]
        case .afterPassphrase: [.text("afterPassphrase")]
        case .afterEnrolment: [.text("afterEnrolment")]
        case .afterNewEnrolment: [.text("afterNewEnrolment")]
        case .fileVault: [.text("fileVault")]
        }
    }
}

extension TokenStorageError.Reason.Credential {
    fileprivate var coded: [CodedReason.Value] {
        switch self {
        case .noDirectory: [.text("noDirectory")]
        case .notAFile: [.text("notAFile")]
        case .unreadable(let cause): [.text("unreadable"), .cause(cause)]
        case .noSlot: [.text("noSlot")]
        }
    }
}
