package import TokenVault

extension CodedReason {
    /// The reason; `nil` for a reason of a newer version.
    package var reason: TokenStorageError.Reason? {
        var values = Values(values[...])
        guard let reason = try? Self.reason(name, &values), values.isEmpty else { return nil }
        return reason
    }

    private static func reason(_ name: String, _ values: inout Values) throws -> TokenStorageError.Reason {
        switch name {
        case "limit": .limit(try values.part())
        case "tooManyChanges": .tooManyChanges(most: try values.number())
        case "other": .other(explanation: try values.optionalText(), advice: try values.optionalText())
        case "systemCall": .systemCall(try values.call())
        case "unknownOutcome": .unknownOutcome(try values.cause())
        case "writingStopped": .writingStopped(try values.call())
        case "keybagNotWritten": .keybagNotWritten(try values.cause())
        case "renameMayBeLost": .renameMayBeLost(try values.call())
        case "inputUnreadable": .inputUnreadable(try values.number())
        case "noLocks": .noLocks(try values.number())
        case "deviceKeyUnreadable": .deviceKeyUnreadable(try values.call())
        case "leaseFile": .leaseFile(try values.call())
        case "choiceDirectory": .choiceDirectory(values.skipNone() ? nil : try values.call())
        case "placeNotRemembered": .placeNotRemembered(try values.cause())
        case "shortage": .shortage(try values.part())
        case "derivationMemoryOfGroup":
            .derivationMemoryOfGroup(needed: try values.number(), left: try values.number())
        case "derivationMemory": .derivationMemory(needed: try values.number(), left: try values.number())
        case "derivationMemoryInUse": .derivationMemoryInUse(needed: try values.number())
        case "derivationTime": .derivationTime(milliseconds: try values.number())
        case "importUnfinished": .importUnfinished(done: try values.number(), of: try values.number())
        case "deadline": .deadline(try values.part())
        case "vaultMissing": .vaultMissing(path: try values.text())
        case "noVault": .noVault(path: try values.text())
        case "noDirectory": .noDirectory(path: try values.text())
        case "noCopy": .noCopy(path: try values.text())
        case "noVaultToMergeInto": .noVaultToMergeInto(path: try values.text())
        case "missing": .missing(try values.part())
        case "deviceKeyMissing": .deviceKeyMissing(path: try values.optionalText())
        case "noCandidate":
            .noCandidate(
                try values.all { values in
                    .init(name: try values.text(), code: try values.part(), reason: try values.cause())
                })
        case "chosenStorageMissing": .chosenStorageMissing(try values.cause())
        case "directoryClosed":
            .directoryClosed(
                path: try values.text(), owner: values.skipNone() ? nil : try values.number(),
                of: try values.optionalText())
        case "ownedByAnotherUser":
            try {
                let user: UInt32 = try values.number()
                return .ownedByAnotherUser(try values.place(), user: user)
            }()
        case "writableByOthers": .writableByOthers(try values.place())
        case "notARegularFile": .notARegularFile(try values.part())
        case "occupied": .occupied(path: try values.text())
        case "exists": .exists(try values.part())
        case "hardLinks": .hardLinks(count: try values.number(), path: try values.text())
        case "readOnly": .readOnly(try values.part())
        case "damage": .damage(try values.part(), offset: try values.number())
        case "damaged": .damaged(try values.part())
        case "damagedCopy": .damagedCopy(try values.cause())
        case "damagedExport":
            .damagedExport(try values.part(), offset: values.skipNone() ? nil : try values.number())
        case "newerFormat": .newerFormat(try values.part())
        case "damagedChoice": .damagedChoice(file: try values.text())
        case "replacedVault": .replacedVault(path: try values.text())
        case "otherVaultExpected": .otherVaultExpected(path: try values.text())
        case "copyOfAnotherVault": .copyOfAnotherVault(path: try values.text())
        case "vaultIsElsewhere": .vaultIsElsewhere(path: try values.text())
        case "forkedBeyondMemory": .forkedBeyondMemory(commits: try values.number())
        case "ancestry": .ancestry(try values.part())
        case "changedMeanwhile": .changedMeanwhile(try values.part())
        case "permission": .permission(try values.part())
        case "slotWouldBeLost":
            .slotWouldBeLost(
                try values.all { values in .init(id: try values.number(), kind: try values.part()) })
        case "slotExists": .slotExists(.init(id: try values.number(), kind: try values.part()))
        case "mistypedGroups": .mistypedGroups(try values.all { values in try values.number() })
        case "slots": .slots(try values.part())
        case "passcodeItemsDeleted": .passcodeItemsDeleted(until: try values.part(), try values.cause())
        case "itemsBoundToDevice": .itemsBoundToDevice(try values.number())
        case "differingValues": .differingValues(values.skipNone() ? nil : try values.number())
        case "policyUnsupported": .policyUnsupported(try values.alternative())
        case "keptValues": .keptValues(most: try values.number())
        case "keyLeftInKeyring":
            .keyLeftInKeyring(isForgotten: try values.number() as Int == 1, try values.cause())
        case "noSessionBus": .noSessionBus(try values.text())
        case "noSecretService": .noSecretService(try values.text())
        case "serviceDidNotStart": .serviceDidNotStart(try values.text())
        case "serviceEnded": .serviceEnded(try values.text())
        case "noLibrary": .noLibrary(try values.text())
        case "busError": .busError(try values.text())
        case "busDenied": .busDenied(try values.text())
        case "writerNameDenied": .writerNameDenied(name: try values.text(), try values.text())
        case "onlyPromptedCreation": .onlyPromptedCreation(try values.text())
        case "commitUnfinished": .commitUnfinished(try values.cause())
        case "earlierCommitUnfinished": .earlierCommitUnfinished(try values.cause())
        case "unreadableCommit": .unreadableCommit(schema: try values.text())
        case "keyring": .keyring(try values.part())
        case "noSystemBus": .noSystemBus(try values.cause())
        case "agentDirectoryClosed": .agentDirectoryClosed
        case "agent": .agent(try values.part())
        case "tooManyFilesForAgent": .tooManyFilesForAgent(try values.call())
        case "agentMissing": .agentMissing(try values.call())
        case "agentLost": .agentLost(try values.call())
        case "agentSilent": .agentSilent(process: values.skipNone() ? nil : try values.number())
        case "agentDirectoryForeign": .agentDirectoryForeign(try values.part(), path: try values.text())
        case "agentDirectoryUnusable":
            try {
                let call = try values.call()
                return .agentDirectoryUnusable(path: try values.text(), call)
            }()
        case "agentSocketElsewhere": .agentSocketElsewhere(expected: try values.text())
        case "agentOutcomeUnknown": .agentOutcomeUnknown(try values.cause())
        case "credential": .credential(try values.text(), try values.credential())
        default: throw Unknown()
        }
    }

    /// A name or a value that this version does not know.
    private struct Unknown: Error {}

    /// The values of a reason, read from the front.
    private struct Values {
        private var rest: ArraySlice<Value>
        var isEmpty: Bool { rest.isEmpty }

        init(_ values: ArraySlice<Value>) { rest = values }

        mutating func skipNone() -> Bool {
            guard rest.first == Value.none else { return false }
            rest.removeFirst()
            return true
        }

        mutating func text() throws -> String {
            guard case .text(let text)? = rest.popFirst() else { throw Unknown() }
            return text
        }

        mutating func optionalText() throws -> String? { skipNone() ? nil : try text() }

        mutating func number<Number: FixedWidthInteger>() throws -> Number {
            guard case .number(let value)? = rest.popFirst(), let number = Number(exactly: value) else {
                throw Unknown()
            }
            return number
        }

        mutating func part<Part: RawRepresentable>() throws -> Part where Part.RawValue == String {
            guard let part = Part(rawValue: try text()) else { throw Unknown() }
            return part
        }

        mutating func call() throws -> TokenStorageError.Reason.SystemCall {
            .init(name: try text(), errorNumber: try number())
        }

        mutating func cause() throws -> TokenStorageError.Reason? {
            if skipNone() { return nil }
            guard case .reason(let coded)? = rest.popFirst(), let reason = coded.reason else {
                throw Unknown()
            }
            return reason
        }

        mutating func all<Element>(_ next: (inout Self) throws -> Element) throws -> [Element] {
            var elements: [Element] = []
            while !isEmpty { elements.append(try next(&self)) }
            return elements
        }

        mutating func place() throws -> TokenStorageError.Reason.Place {
            let (name, path) = (try text(), try optionalText())
            return switch (name, path) {
            case ("path", let path?): .path(path)
            case ("vaultDirectory", let path?): .vaultDirectory(path)
            case ("stateDirectory", nil): .stateDirectory
            case ("vaultPlace", nil): .vaultPlace
            case ("tokenFile", nil): .tokenFile
            case ("tokenFileDirectory", nil): .tokenFileDirectory
            default: throw Unknown()
            }
        }

        mutating func alternative() throws -> TokenStorageError.Reason.Alternative {
            switch try text() {
            case "policy": .policy(try part())
            case "afterPassphrase": .afterPassphrase
            case "afterEnrolment": .afterEnrolment
            case "afterNewEnrolment": .afterNewEnrolment
            case "fileVault": .fileVault
            default: throw Unknown()
            }
        }

        mutating func credential() throws -> TokenStorageError.Reason.Credential {
            switch try text() {
            case "noDirectory": .noDirectory
            case "notAFile": .notAFile
            case "unreadable": .unreadable(try cause())
            case "noSlot": .noSlot
            default: throw Unknown()
            }
        }
    }
}
