package import TokenVault

// The types of TokenVault in their encoded form.
extension WireWriter {
    package func append(_ policy: AccessPolicy) { append(policy.wireNumber) }

    package func append(_ policies: Set<AccessPolicy>) {
        append(policies.reduce(UInt8(0)) { $0 | 1 << $1.wireNumber })
    }

    package func append(_ state: LockState) {
        let number: UInt8 =
            switch state {
            case .locked: 0
            case .afterFirstUnlock: 1
            case .unlocked: 2
            }
        append(number)
    }

    package func append(_ attributes: TokenAttributes) {
        append(UInt16(attributes.count))
        for (name, value) in attributes {
            append(text: name)
            append(text: value)
        }
    }

    package func append(_ query: TokenQuery) {
        append(text: query.prefix)
        append(query.attributes)
    }

    package func append(_ metadata: TokenMetadata) {
        append(text: metadata.key.name)
        append(text: metadata.service)
        append(metadata.policy)
        append(metadata.label) { append(text: $0) }
        append(metadata.attributes)
        append(date: metadata.created)
        append(date: metadata.modified)
        append(metadata.expires) { append(date: $0) }
        append(metadata.generation)
        append(flag: metadata.isPolicyFromLimitedSession)
    }

    package func append(_ item: TokenItem) {
        append(item.metadata)
        append(secret: item.secret)
    }

    package func append(_ commit: TokenCommit) {
        append(commit.generation) { append($0) }
        append(UInt32(commit.existed.count))
        for existed in commit.existed { append(flag: existed) }
        let resets = commit.policyResets.prefix(AgentWire.maximumPolicyResets)
        append(UInt32(resets.count))
        for reset in resets {
            append(text: reset.key.name)
            append(reset.from)
            append(reset.to)
        }
    }

    package func append(_ event: TokenEvent) {
        switch event {
        case .stored(let key, let generation):
            append(UInt8(1))
            append(text: key.name)
            append(generation)
        case .deleted(let key, let generation):
            append(UInt8(2))
            append(text: key.name)
            append(generation)
        case .overflowed: append(UInt8(3))
        }
    }

    package func append(_ error: TokenStorageError) {
        append(text: error.code.rawValue)
        append(text: Self.fitting(error.operation))
        append(text: Self.fitting(error.backend))
        append(error.reason) { append(CodedReason($0)) }
        // For a client that does not know the reason.
        append(error.underlying) { append(text: Self.fitting($0)) }
        append(error.advice) { append(text: Self.fitting($0)) }
        append(error.generation) { append($0) }
    }

    package func append(_ reason: CodedReason, depth: Int = 0) {
        append(text: reason.name)
        let values = reason.values.prefix(AgentWire.maximumReasonValues)
        append(UInt8(values.count))
        for value in values {
            switch value {
            case .reason(let cause) where depth < AgentWire.maximumReasonDepth:
                append(UInt8(3))
                append(cause, depth: depth + 1)
            case .reason, .none: append(UInt8(0))
            case .number(let number):
                append(UInt8(1))
                append(UInt64(bitPattern: number))
            case .text(let text):
                append(UInt8(2))
                append(text: Self.fitting(text))
            }
        }
    }

    /// Returns `text`, shortened if it is above the limit for an error's text.
    private static func fitting(_ text: String) -> String {
        guard text.utf8.count > AgentWire.maximumText else { return text }
        return String(decoding: text.utf8.prefix(AgentWire.maximumText / 4), as: UTF8.self)
    }
}

extension WireReader {
    package mutating func policy() throws(WireError) -> AccessPolicy {
        guard let policy = AccessPolicy(wireNumber: try integer(UInt8.self)) else { throw .outOfBounds }
        return policy
    }

    package mutating func policies() throws(WireError) -> Set<AccessPolicy> {
        let bits = try integer(UInt8.self)
        let policies = Set(AccessPolicy.allCases.filter { bits & 1 << $0.wireNumber != 0 })
        guard policies.reduce(UInt8(0), { $0 | 1 << $1.wireNumber }) == bits else { throw .outOfBounds }
        return policies
    }

    package mutating func lockState() throws(WireError) -> LockState {
        switch try integer(UInt8.self) {
        case 0: .locked
        case 1: .afterFirstUnlock
        case 2: .unlocked
        default: throw .outOfBounds
        }
    }

    package mutating func attributes() throws(WireError) -> TokenAttributes {
        let count = Int(try integer(UInt16.self))
        // Rejected before reading: the attributes would take far more memory than was sent.
        guard count <= TokenAttributes.maximumCount else { throw .outOfBounds }
        var attributes = TokenAttributes()
        var last: TokenKey?
        for _ in 0..<count {
            let name = try text(limit: AgentWire.maximumDetail)
            // Names are in their stored order, without repetition.
            guard last.map({ $0 < TokenKey(name) }) ?? true else { throw .outOfBounds }
            last = TokenKey(name)
            attributes[name] = try text(limit: AgentWire.maximumDetail)
        }
        return attributes
    }

    package mutating func query() throws(WireError) -> TokenQuery {
        let prefix = try text(limit: AgentWire.maximumDetail)
        return TokenQuery(prefix: prefix, attributes: try attributes())
    }

    package mutating func key() throws(WireError) -> TokenKey {
        TokenKey(try text(limit: AgentWire.maximumDetail))
    }

    package mutating func service() throws(WireError) -> String { try text(limit: AgentWire.maximumDetail) }

    package mutating func metadata() throws(WireError) -> TokenMetadata {
        let key = try key()
        let service = try service()
        let policy = try policy()
        let label = try optional { (reader) throws(WireError) in
            try reader.text(limit: AgentWire.maximumDetail)
        }
        let attributes = try attributes()
        let created = try date()
        let modified = try date()
        let expires = try optional { (reader) throws(WireError) in try reader.date() }
        return TokenMetadata(
            key: key, service: service, policy: policy, label: label, attributes: attributes,
            created: created, modified: modified, expires: expires, generation: try generation(),
            isPolicyFromLimitedSession: try flag())
    }

    package mutating func item() throws(WireError) -> TokenItem {
        let metadata = try metadata()
        return TokenItem(metadata: metadata, secret: try secret())
    }

    package mutating func commit() throws(WireError) -> TokenCommit {
        let generation = try optional { (reader) throws(WireError) in try reader.generation() }
        let count = Int(try integer(UInt32.self))
        guard count <= remaining else { throw .tooShort }
        var existed: [Bool] = []
        for _ in 0..<count { existed.append(try flag()) }
        let resetCount = Int(try integer(UInt32.self))
        guard resetCount <= AgentWire.maximumPolicyResets else { throw .outOfBounds }
        var resets: [PolicyReset] = []
        for _ in 0..<resetCount {
            let key = try key()
            let from = try policy()
            resets.append(PolicyReset(key: key, from: from, to: try policy()))
        }
        return TokenCommit(generation: generation, existed: existed, policyResets: resets)
    }

    package mutating func event() throws(WireError) -> TokenEvent {
        switch try integer(UInt8.self) {
        case 1:
            let key = try key()
            return .stored(key, try generation())
        case 2:
            let key = try key()
            return .deleted(key, try generation())
        case 3: return .overflowed
        default: throw .outOfBounds
        }
    }

    /// Reads an error. An unknown code comes from a newer agent and is read as `unavailable`.
    package mutating func error() throws(WireError) -> TokenStorageError {
        let name = try text(limit: AgentWire.maximumText)
        let code = TokenStorageError.Code(rawValue: name) ?? .unavailable
        let operation = try text(limit: AgentWire.maximumText)
        let backend = try text(limit: AgentWire.maximumText)
        let coded = try optional { (reader) throws(WireError) in try reader.reason(depth: 0) }
        let explanation = try optional { (reader) throws(WireError) in
            try reader.text(limit: AgentWire.maximumText)
        }
        let advice = try optional { (reader) throws(WireError) in
            try reader.text(limit: AgentWire.maximumText)
        }
        let described: TokenStorageError.Reason? =
            explanation == nil && advice == nil ? nil : .other(explanation: explanation, advice: advice)
        return TokenStorageError(
            code, operation: operation, backend: backend, reason: coded?.reason ?? described,
            generation: try optional { (reader) throws(WireError) in try reader.generation() })
    }

    private mutating func reason(depth: Int) throws(WireError) -> CodedReason {
        let name = try text(limit: AgentWire.maximumText)
        let count = Int(try integer(UInt8.self))
        guard count <= AgentWire.maximumReasonValues else { throw .outOfBounds }
        var values: [CodedReason.Value] = []
        for _ in 0..<count {
            switch try integer(UInt8.self) {
            case 0: values.append(.none)
            case 1: values.append(.number(Int64(bitPattern: try integer(UInt64.self))))
            case 2: values.append(.text(try text(limit: AgentWire.maximumText)))
            case 3:
                guard depth < AgentWire.maximumReasonDepth else { throw .outOfBounds }
                values.append(.reason(try reason(depth: depth + 1)))
            default: throw .outOfBounds
            }
        }
        return CodedReason(name: name, values: values)
    }
}

extension AccessPolicy {
    fileprivate var wireNumber: UInt8 {
        switch self {
        case .whenUnlocked: 0
        case .afterFirstUnlock: 1
        case .whenUnlockedThisDeviceOnly: 2
        case .afterFirstUnlockThisDeviceOnly: 3
        case .whenPasscodeSetThisDeviceOnly: 4
        }
    }

    fileprivate init?(wireNumber: UInt8) {
        guard let policy = Self.allCases.first(where: { $0.wireNumber == wireNumber }) else { return nil }
        self = policy
    }
}
