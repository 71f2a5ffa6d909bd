extension TokenStorageError: CustomStringConvertible {
    /// One line: the failure, the system's explanation, and the next step.
    public var description: String {
        var text = "\(operation): \(code.summary)"
        if let underlying { text += " (\(underlying))" }
        text += ": \(advice ?? code.nextStep)"
        return text
    }
}

extension TokenStorageError.Code {
    /// The failure, in a few words.
    public var summary: String {
        switch kind {
        case .invalidKey: "the key cannot be used"
        case .invalidArgument: "an argument is outside its limits"
        case .tooLarge: "the item is too large"
        case .unsupportedPolicy: "this storage does not support that policy"
        case .notText: "the secret is not UTF-8 text"
        case .encodingFailed: "the value could not be encoded"
        case .decodingFailed: "the secret is not of that type"
        case .conflict: "it was changed meanwhile"
        case .notFound: "there is no such item"
        case .alreadyExists: "it exists already"
        case .locked: "locked"
        case .wrongPassphrase: "wrong passphrase or key"
        case .notPermitted: "this unlock method may not do that"
        case .wrongDevice: "the item belongs to another device"
        case .insecurePermissions: "other users can read or change the file"
        case .corrupt: "damaged or tampered with"
        case .rolledBack: "the vault is older than the one this device has seen"
        case .forked: "this file lacks changes that this device has seen"
        case .unexpectedVault: "another vault is at this path"
        case .notAVault: "the file is not a vault"
        case .unsupportedFormat: "written by a newer program"
        case .duplicateVault: "the same vault is at another path too"
        case .unavailable: "not available"
        case .noSpace: "no space left"
        case .readOnly: "read-only"
        case .ioFailure: "the system could not read or write"
        case .resourcesExhausted: "the system is out of descriptors, memory or threads"
        case .timedOut: "timed out"
        case .cancelled: "cancelled"
        case .outcomeUnknown: "started, but the outcome is unknown"
        case .closed: "the storage is closed"
        case .tooManySlots: "the vault has no room for another slot"
        case .slotNotFound: "there is no such slot"
        case .lastSlot: "the last slot cannot be removed"
        case .internalError: "an error in TokenVault itself"
        }
    }

    /// The next step, for an error without better advice.
    public var nextStep: String {
        switch kind {
        case .invalidKey: "use at most 1,024 bytes of UTF-8"
        case .invalidArgument: "see the documentation of the call for its limits"
        case .tooLarge: "a secret is at most 1 MiB"
        case .unsupportedPolicy: "use a policy from supportedPolicies, or the file vault"
        case .notText: "read it as bytes"
        case .encodingFailed, .decodingFailed: "check the type that was stored"
        case .conflict: "read it again before you write"
        case .notFound: "list the keys to see what is there"
        case .alreadyExists: "choose another key, or first delete the item that has it"
        case .locked: "unlock and try again"
        case .wrongPassphrase: "check the passphrase or key file and try again"
        case .notPermitted: "unlock with a passphrase"
        case .wrongDevice:
            "read it on the device that stored it; here, use another key, or remove that device"
        case .insecurePermissions: "give the file mode 0600 and the right owner"
        case .corrupt: "run verify to see where, salvage the intact data, or restore a backup"
        case .rolledBack: "put the newest copy back, or restore this one on purpose"
        case .forked: "merge the two copies, or adopt this one on purpose"
        case .unexpectedVault: "put the expected vault back, or adopt this one on purpose"
        case .notAVault: "check the path"
        case .unsupportedFormat: "use a newer version"
        case .duplicateVault: "use the other one, or adopt this one"
        case .unavailable: "check that it exists and is running"
        case .noSpace: "free some space; deleting items still works"
        case .readOnly: "make the file system writable"
        case .ioFailure: "check the disk and try again"
        case .resourcesExhausted: "close what is not needed and try again"
        case .timedOut: "try again, with a longer deadline if need be"
        case .cancelled: "try again"
        case .outcomeUnknown: "read the item and compare its generation"
        case .closed: "open it again"
        case .tooManySlots: "remove one first"
        case .slotNotFound: "list the slots to see their numbers"
        case .lastSlot: "add another one first"
        case .internalError: "report it, with the steps that led to it"
        }
    }
}
