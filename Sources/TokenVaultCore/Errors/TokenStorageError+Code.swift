extension TokenStorageError {
    /// A kind of failure. New codes may come: a `switch` needs a `default`.
    public struct Code: Hashable, Sendable {
        /// The kind, among those known to this version, for exhaustive switches inside the package.
        package let kind: Kind

        private init(_ kind: Kind) { self.kind = kind }

        package enum Kind: String, CaseIterable, Hashable, Sendable {
            case invalidKey, invalidArgument, tooLarge, unsupportedPolicy, notText, encodingFailed
            case decodingFailed, conflict, notFound, alreadyExists, locked, wrongPassphrase
            case notPermitted, wrongDevice, insecurePermissions, corrupt, rolledBack, notAVault
            case unsupportedFormat, duplicateVault, unavailable, noSpace, readOnly, ioFailure
            case resourcesExhausted, timedOut, cancelled, outcomeUnknown, closed, tooManySlots
            case slotNotFound, lastSlot, internalError, forked, unexpectedVault
        }

        // The caller's arguments
        /// A key is longer than 1,024 bytes.
        public static let invalidKey = Code(.invalidKey)
        /// A service, label, attribute, query or option is outside its documented limits.
        public static let invalidArgument = Code(.invalidArgument)
        /// A secret is larger than 1 MiB, or its attributes are larger than 60 KiB together.
        public static let tooLarge = Code(.tooLarge)
        /// The storage cannot keep the policy's promise. The advice names an alternative.
        public static let unsupportedPolicy = Code(.unsupportedPolicy)
        /// The stored bytes are not UTF-8 text.
        public static let notText = Code(.notText)
        /// A value could not be turned into bytes.
        public static let encodingFailed = Code(.encodingFailed)
        /// The stored bytes are not a value of the requested type.
        public static let decodingFailed = Code(.decodingFailed)

        // Existing items and files
        /// A compare-and-store or compare-and-delete found another generation.
        public static let conflict = Code(.conflict)
        /// A change that needs an item (update, rename) found none.
        public static let notFound = Code(.notFound)
        /// The new key of a rename, or the file to be created, is there already.
        public static let alreadyExists = Code(.alreadyExists)

        // Permission
        /// The keys are not held: the storage was not unlocked, or the item's class is locked.
        public static let locked = Code(.locked)
        /// The passphrase or key file opens no slot of the vault.
        public static let wrongPassphrase = Code(.wrongPassphrase)
        /// The unlock method does not have the required scope.
        public static let notPermitted = Code(.notPermitted)
        /// The item belongs to another device.
        public static let wrongDevice = Code(.wrongDevice)
        /// A file's owner or mode lets other users read or change the file.
        public static let insecurePermissions = Code(.insecurePermissions)

        // Damage
        /// Stored bytes fail their authentication, or a file is damaged.
        public static let corrupt = Code(.corrupt)
        /// The file is older than the last state that this device has seen.
        public static let rolledBack = Code(.rolledBack)
        /// The file lacks commits that this device has stored or read: another copy of the vault was written
        /// to meanwhile.
        public static let forked = Code(.forked)
        /// Another vault is at a path where this device remembers a different one.
        public static let unexpectedVault = Code(.unexpectedVault)
        /// The file is not a vault.
        public static let notAVault = Code(.notAVault)
        /// The file needs a newer program.
        public static let unsupportedFormat = Code(.unsupportedFormat)
        /// The same vault is at two paths.
        public static let duplicateVault = Code(.duplicateVault)

        // The system
        /// The backend, its file or its service is missing.
        public static let unavailable = Code(.unavailable)
        /// The disk or the quota is full. Nothing was changed; deleting still works.
        public static let noSpace = Code(.noSpace)
        /// The file system or the handle is read-only.
        public static let readOnly = Code(.readOnly)
        /// The system failed to read or write. Nothing was changed.
        public static let ioFailure = Code(.ioFailure)
        /// Descriptors, memory or threads ran out. Nothing was changed.
        public static let resourcesExhausted = Code(.resourcesExhausted)
        /// The deadline passed. Nothing was changed.
        public static let timedOut = Code(.timedOut)
        /// The task was cancelled before anything was changed.
        public static let cancelled = Code(.cancelled)
        /// A write began and its outcome is unknown: see ``TokenStorageError/generation``.
        public static let outcomeUnknown = Code(.outcomeUnknown)
        /// The storage was closed, or its process forked.
        public static let closed = Code(.closed)

        // Slots
        /// The vault has no room for another slot.
        public static let tooManySlots = Code(.tooManySlots)
        /// No slot has this number.
        public static let slotNotFound = Code(.slotNotFound)
        /// The last slot cannot be removed.
        public static let lastSlot = Code(.lastSlot)
        /// A bug in this package; please report it.
        public static let internalError = Code(.internalError)

        /// Lets `catch TokenStorageError.Code.locked` match an error with that code.
        public static func ~= (code: Code, error: any Error) -> Bool {
            (error as? TokenStorageError)?.code == code
        }
    }
}

extension TokenStorageError.Code: RawRepresentable, CaseIterable, CustomStringConvertible {
    /// Creates the code with this name; `nil` when this version does not know the name.
    public init?(rawValue: String) {
        guard let kind = Kind(rawValue: rawValue) else { return nil }
        self.init(kind)
    }

    /// The code's name, for example `locked`.
    public var rawValue: String { kind.rawValue }
    /// The code's name, for example `locked`.
    public var description: String { rawValue }
    /// All codes that this version knows.
    public static var allCases: [Self] { Kind.allCases.map(Self.init) }
}
