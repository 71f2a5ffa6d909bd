/// The numbers of the agent's protocol, version 1. `Agent.md` in the documentation catalog describes it.
package enum AgentWire {
    /// The version that this code speaks.
    package static let version: UInt16 = 1
    /// What the first frame of each side begins with.
    package static let magic: [UInt8] = Array("TVAGENT\n".utf8)
    /// Length of what is before a frame's payload: how long that is.
    package static let prefixLength = 4
    /// The longest payload: a secret of 1 MiB with the longest names and details that it can have, and room to spare.
    /// A longer one that is announced ends the connection.
    package static let maximumPayload = (1 << 20) + (160 << 10)
    /// How much of a listing goes into one frame, give or take an item.
    package static let pageLength = 48 << 10
    /// The longest path of a vault or directory, in bytes.
    package static let maximumPath = 4_096
    /// The most changed policies that the answer to a commit tells of.
    static let maximumPolicyResets = 512
    /// The longest text of an error.
    static let maximumText = 4_096
    /// How many values the reason of an error has at most, and how many causes are behind it.
    static let maximumReasonValues = 64
    static let maximumReasonDepth = 4
    /// The largest label, attribute or name.
    static let maximumDetail = 64 << 10

    /// What a payload begins with, behind the request's number: what a client asks for, or what the agent answers.
    package enum Kind: UInt8, CaseIterable, Sendable {
        /// Of both sides: which versions it speaks, or which one it is.
        case hello = 0
        case secret = 1
        case item, metadata, list, commit, deleteAll, state, status, unlock, lock, close, subscribe, vaults
        case lockAll, stop
        /// Changes of a commit that does not fit into one frame, in front of it; not answered.
        case commitPart
        case history, undo
        /// What was asked for, or the last part of it.
        case result = 64
        /// A part of it; others follow.
        case part
        /// Why not: a ``TokenStorageError``.
        case failure
        /// The agent does not hold the vault: nobody has unlocked it there since it started.
        case notHeld
        /// The agent ends the connection; what it has not answered it has not begun.
        case goodbye
        /// Something changed, for who subscribed.
        case event
    }
}

/// Bytes that are not what the protocol says.
package enum WireError: Error, Equatable, Sendable {
    /// The bytes end before the value does.
    case tooShort
    /// A length, a count, a number or a text is outside its bounds.
    case outOfBounds
    /// Something follows where nothing should.
    case tooLong
    /// The other side speaks another version.
    case version
}
