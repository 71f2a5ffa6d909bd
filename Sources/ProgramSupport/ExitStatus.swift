package import TokenVault

/// The program's exit status, on which scripts rely.
package enum ExitStatus: Int32, CaseIterable {
    case done = 0
    case failure = 1
    case notFound = 3
    case locked = 4
    /// Wrong passphrase, or not permitted.
    case refused = 5
    case wrongDevice = 6
    /// Corrupt, tampered with, rolled back, forked, or another vault than the expected one.
    case damaged = 7
    /// The backend, the vault or the agent is not available.
    case unavailable = 8
    case conflict = 9
    /// Timed out, or the outcome is unknown.
    case timedOut = 10
    case usage = 64

    /// Creates the status for a library error. The switch is total, so a new code cannot be forgotten.
    package init(_ code: TokenStorageError.Code) {
        self =
            switch code.kind {
            case .invalidKey, .invalidArgument: .usage
            case .notFound, .slotNotFound: .notFound
            case .locked: .locked
            case .wrongPassphrase, .notPermitted: .refused
            case .wrongDevice: .wrongDevice
            case .corrupt, .rolledBack, .forked, .unexpectedVault: .damaged
            case .unavailable, .notAVault, .unsupportedFormat, .insecurePermissions: .unavailable
            case .conflict, .alreadyExists, .duplicateVault: .conflict
            case .timedOut, .outcomeUnknown: .timedOut
            case .tooLarge, .unsupportedPolicy, .notText, .encodingFailed, .decodingFailed, .noSpace,
                .readOnly, .ioFailure, .resourcesExhausted, .cancelled, .closed, .tooManySlots, .lastSlot,
                .internalError:
                .failure
            }
    }
}
