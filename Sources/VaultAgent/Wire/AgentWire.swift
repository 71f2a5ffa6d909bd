/// The constants of the agent's protocol, version 1. `Agent.md` in the documentation catalog describes it.
package enum AgentWire {
    /// The version that this code supports.
    package static let version: UInt16 = 1
    /// The bytes that the first frame of each side begins with.
    package static let magic: [UInt8] = Array("TVAGENT\n".utf8)
    /// The length of the field before a frame's payload, which has the payload's length.
    package static let prefixLength = 4
    /// The longest payload: a secret of 1 MiB with the longest names and details, and spare room. A frame
    /// that announces a longer payload ends the connection.
    package static let maximumPayload = (1 << 20) + (160 << 10)
    /// The approximate length of a listing's page in one frame; it may be exceeded by one item.
    package static let pageLength = 48 << 10
    /// The longest path of a vault or directory, in bytes.
    package static let maximumPath = 4_096
    /// The largest number of changed policies in the answer to a commit.
    static let maximumPolicyResets = 512
    /// The longest text of an error.
    static let maximumText = 4_096
    /// The largest number of values in an error's reason, and of causes nested in it.
    static let maximumReasonValues = 64
    static let maximumReasonDepth = 4
    /// The largest label, attribute or name.
    static let maximumDetail = 64 << 10

    /// The kind at the start of a payload, after the request's number: a client's request or the agent's
    /// answer.
    package enum Kind: UInt8, CaseIterable, Sendable {
        /// Of both sides: the supported versions, or the chosen one.
        case hello = 0
        case secret = 1
        case item, metadata, list, commit, deleteAll, state, status, unlock, lock, close, subscribe, vaults
        case lockAll, stop
        /// Changes of a commit that does not fit into one frame, sent before it; not answered.
        case commitPart
        case history, undo
        /// The answer, or the last part of it.
        case result = 64
        /// A part of the answer; others follow.
        case part
        /// The failure: a ``TokenStorageError``.
        case failure
        /// The agent does not hold the vault: it was not unlocked there since the agent started.
        case notHeld
        /// The agent ends the connection. It has not begun any unanswered request.
        case goodbye
        /// A change, for a subscriber.
        case event
    }
}

/// An encoding that the protocol does not allow.
package enum WireError: Error, Equatable, Sendable {
    /// The bytes end before the value does.
    case tooShort
    /// A length, a count, a number or a text is outside its bounds.
    case outOfBounds
    /// Bytes follow where the frame should end.
    case tooLong
    /// The other side uses another version.
    case version
}
