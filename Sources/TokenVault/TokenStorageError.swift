/// Why a call failed. Catch by code:
///
/// ```swift
/// do { … } catch let error where error.code == .locked { … }
/// ```
///
/// An error never carries a key, a secret, a label or an attribute.
public struct TokenStorageError: Error, Sendable, Equatable {
    /// The reason.
    public var code: Code
    /// What was being done: `store`, `unlock`, `verify` …
    public var operation: String
    /// Which backend: `file`, `memory`, `secret-service` …
    public var backend: String
    /// What the system said (`fdatasync: Input/output error`), where that helps.
    public var underlying: String?
    /// What to do next, or where the damage is, in words for a person.
    public var advice: String?
    /// For ``Code/conflict``: the generation the key has, `nil` when it is absent. For
    /// ``Code/outcomeUnknown``: the generation that the write has if it happened.
    public var generation: Generation?

    /// An error. Backends make these.
    public init(
        _ code: Code, operation: String, backend: String, underlying: String? = nil,
        advice: String? = nil, generation: Generation? = nil
    ) {
        self.code = code
        self.operation = operation
        self.backend = backend
        self.underlying = underlying
        self.advice = advice
        self.generation = generation
    }
}

extension TokenStorageError {
    /// Every reason a call can fail.
    public enum Code: String, CaseIterable, Hashable, Sendable {
        // What the caller gave
        /// A key is empty, longer than 1,024 bytes or has control characters.
        case invalidKey
        /// A service, label, attribute, query or option is outside its documented limits.
        case invalidArgument
        /// A secret is larger than 1 MiB, or its attributes are larger than 60 KiB together.
        case tooLarge
        /// The storage cannot keep the policy's promise. The advice names one that can.
        case unsupportedPolicy
        /// The stored bytes are not UTF-8 text.
        case notText
        /// A value could not be turned into bytes.
        case encodingFailed
        /// The stored bytes are not a value of the type asked for.
        case decodingFailed

        // What is there
        /// A compare-and-store or compare-and-delete found another generation.
        case conflict
        /// A change that needs an item (update, rename) found none.
        case notFound
        /// The new key of a rename, or the file to be created, is there already.
        case alreadyExists

        // Who may
        /// Keys for this are not held: nothing was unlocked, or the item's class is locked.
        case locked
        /// The passphrase or key file opens no slot of the vault.
        case wrongPassphrase
        /// The unlock method does not have the scope this needs.
        case notPermitted
        /// The item belongs to another device.
        case wrongDevice
        /// A file's owner or mode lets others read or change it.
        case insecurePermissions

        // What is broken
        /// Stored bytes fail their authentication, or a file is damaged.
        case corrupt
        /// The file is older than what this device has seen of it.
        case rolledBack
        /// The file is not a vault.
        case notAVault
        /// The file needs a newer program.
        case unsupportedFormat
        /// The same vault lives at two paths.
        case duplicateVault

        // What the system did
        /// The backend, its file or its service is not there.
        case unavailable
        /// The disk or the quota is full. Nothing was changed; deleting still works.
        case noSpace
        /// The file system or the handle is read-only.
        case readOnly
        /// The system failed to read or write. Nothing was changed.
        case ioFailure
        /// Descriptors, memory or threads ran out. Nothing was changed.
        case resourcesExhausted
        /// The deadline passed. Nothing was changed.
        case timedOut
        /// The task was cancelled before anything was changed.
        case cancelled
        /// A write was begun and its end is not known: see ``TokenStorageError/generation``.
        case outcomeUnknown
        /// The storage was closed, or its process forked.
        case closed

        // Slots
        /// The vault has as many slots as it can take.
        case tooManySlots
        /// No slot has this number.
        case slotNotFound
        /// The last slot cannot be removed.
        case lastSlot
        /// A program error here; please report it.
        case internalError

        /// Lets `catch TokenStorageError.Code.locked` match an error with that code where the error's type is
        /// not known; where it is, write `catch where error.code == .locked`.
        public static func ~= (code: Code, error: any Error) -> Bool {
            (error as? TokenStorageError)?.code == code
        }
    }
}

extension TokenStorageError: CustomStringConvertible {
    /// One line: what happened, what the system said, and what to do next.
    public var description: String {
        var text = "\(operation): \(code.summary)"
        if let underlying { text += " (\(underlying))" }
        text += ": \(advice ?? code.nextStep)"
        return text
    }
}

extension TokenStorageError.Code {
    /// What happened, in a few words.
    public var summary: String {
        switch self {
        case .invalidKey: "the key cannot be used"
        case .invalidArgument: "an argument is outside its limits"
        case .tooLarge: "the item is too large"
        case .unsupportedPolicy: "this storage cannot keep that policy's promise"
        case .notText: "the secret is not UTF-8 text"
        case .encodingFailed: "the value could not be encoded"
        case .decodingFailed: "the secret is not of that type"
        case .conflict: "the item is not in the expected generation"
        case .notFound: "there is no such item"
        case .alreadyExists: "it exists already"
        case .locked: "locked"
        case .wrongPassphrase: "wrong passphrase or key"
        case .notPermitted: "this unlock method may not do that"
        case .wrongDevice: "the item belongs to another device"
        case .insecurePermissions: "others can read or change the file"
        case .corrupt: "the vault is damaged or was tampered with"
        case .rolledBack: "the vault is older than what this device has seen of it"
        case .notAVault: "the file is not a vault"
        case .unsupportedFormat: "the vault was written by a newer program"
        case .duplicateVault: "the same vault is at another path too"
        case .unavailable: "not available"
        case .noSpace: "no space left"
        case .readOnly: "read-only"
        case .ioFailure: "the system could not read or write"
        case .resourcesExhausted: "the system is out of descriptors, memory or threads"
        case .timedOut: "timed out"
        case .cancelled: "cancelled"
        case .outcomeUnknown: "begun, and whether it happened is not known"
        case .closed: "the storage is closed"
        case .tooManySlots: "the vault has as many slots as it can take"
        case .slotNotFound: "there is no such slot"
        case .lastSlot: "the last slot cannot be removed"
        case .internalError: "an error in TokenVault itself"
        }
    }

    /// What to do next, when the error has no better advice.
    public var nextStep: String {
        switch self {
        case .invalidKey: "use 1 to 1,024 bytes of UTF-8 without control characters"
        case .invalidArgument: "see the documentation of the call for its limits"
        case .tooLarge: "a secret is at most 1 MiB"
        case .unsupportedPolicy: "use a policy from supportedPolicies, or the file vault"
        case .notText: "read it as bytes"
        case .encodingFailed, .decodingFailed: "check the type that was stored"
        case .conflict: "read the item again and decide anew"
        case .notFound: "list the keys to see what is there"
        case .alreadyExists: "choose another name, or delete the old one first"
        case .locked: "unlock and try again"
        case .wrongPassphrase: "check the passphrase or key file and try again"
        case .notPermitted: "unlock with a passphrase"
        case .wrongDevice: "read it on the device that stored it, or store it anew"
        case .insecurePermissions: "give the file mode 0600 and the right owner"
        case .corrupt: "run verify to see where, and restore a backup"
        case .rolledBack: "put the newest copy back"
        case .notAVault: "check the path"
        case .unsupportedFormat: "use a newer version"
        case .duplicateVault: "keep one of the two"
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
        case .internalError: "report it, with what led to it"
        }
    }
}
