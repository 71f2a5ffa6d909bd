internal import TokenVault
internal import TokenVaultPlatform

extension AgentRequest {
    /// Adds the request as a frame; a large commit as several frames. Returns false when it is still too
    /// long.
    package func write(to writer: inout WireWriter) -> Bool {
        if case .commit(let service, let changes) = operation {
            return write(changes, of: service, to: &writer)
        }
        begin(&writer)
        switch operation {
        case .secret(let service, let key), .item(let service, let key), .metadata(let service, let key),
            .history(let service, let key):
            writer.append(text: service)
            writer.append(text: key.name)
        case .undo(let service, let key, let generation):
            writer.append(text: service)
            writer.append(text: key.name)
            writer.append(generation) { writer.append($0) }
        case .list(let service, let query):
            writer.append(service) { writer.append(text: $0) }
            writer.append(query)
        case .commit: break
        case .commitPart(let service, let changes):
            writer.append(text: service)
            writer.append(UInt32(changes.count))
            for change in changes { writer.append(change) }
        case .deleteAll(let service), .subscribe(let service): writer.append(text: service)
        case .unlock(let order): writer.append(order)
        case .state, .status, .lock, .close, .vaults, .lockAll, .stop: break
        }
        return writer.end()
    }

    private func begin(_ writer: inout WireWriter) {
        writer.begin(operation.kind, id: id)
        writer.append(path: vault.path)
        writer.append(vault.identifier) { writer.append(text: $0) }
    }

    /// Writes a commit: as many part frames as needed, and a last frame for the rest.
    private func write(
        _ changes: [TokenChange], of service: String, to writer: inout WireWriter
    ) -> Bool {
        let first = writer.buffer.count
        var rest = changes[...]
        while true {
            begin(&writer)
            writer.append(text: service)
            let countOffset = writer.buffer.count
            writer.append(UInt32(0))
            var count: UInt32 = 0
            while let change = rest.first {
                let end = writer.buffer.count
                writer.append(change)
                if writer.isTooLong {
                    writer.buffer.truncate(to: end)
                    break
                }
                rest.removeFirst()
                count += 1
            }
            writer.buffer.replace(at: countOffset, with: count)
            guard !rest.isEmpty else { return writer.end() }
            guard count > 0 else {
                // A change that is too long for any frame.
                writer.buffer.truncate(to: first)
                return false
            }
            writer.change(to: .commitPart)
            _ = writer.end()
        }
    }

    /// Reads the payload of a frame other than `hello`.
    package init(_ reader: inout WireReader) throws(WireError) {
        var known: KnownVault?
        try self.init(&reader, knowing: &known)
    }

    /// Reads the same, for a client that usually asks for the same vault again. The name of a known vault is
    /// not parsed again.
    package init(_ reader: inout WireReader, knowing known: inout KnownVault?) throws(WireError) {
        id = try reader.integer(UInt32.self)
        guard let kind = AgentWire.Kind(rawValue: try reader.integer(UInt8.self)) else { throw .outOfBounds }
        if let known, reader.skip(known.bytes) {
            vault = known.vault
        } else {
            let named = try reader.withBytes { (reader) throws(WireError) in try VaultReference(&reader) }
            vault = named.value
            known = KnownVault(vault: vault, bytes: named.bytes)
        }
        operation = try AgentOperation(kind, &reader)
        try reader.finish()
    }
}

/// The vault of the last request, and its encoded form. The encoded form begins with its length, so no other
/// vault has the same bytes.
package struct KnownVault: Sendable {
    fileprivate let vault: VaultReference
    fileprivate let bytes: [UInt8]
}

extension VaultReference {
    fileprivate init(_ reader: inout WireReader) throws(WireError) {
        path = try reader.path()
        identifier = try reader.optional { (reader) throws(WireError) in try reader.text(limit: 64) }
    }
}

extension AgentOperation {
    init(_ kind: AgentWire.Kind, _ reader: inout WireReader) throws(WireError) {
        switch kind {
        case .secret:
            let service = try reader.service()
            self = .secret(service: service, key: try reader.key())
        case .item:
            let service = try reader.service()
            self = .item(service: service, key: try reader.key())
        case .metadata:
            let service = try reader.service()
            self = .metadata(service: service, key: try reader.key())
        case .list:
            let service = try reader.optional { (reader) throws(WireError) in try reader.service() }
            self = .list(service: service, query: try reader.query())
        case .commit, .commitPart:
            let service = try reader.service()
            let count = Int(try reader.integer(UInt32.self))
            // Each change takes at least a byte, so the count cannot reserve more memory than was sent.
            guard count <= reader.remaining else { throw .tooShort }
            var changes: [TokenChange] = []
            for _ in 0..<count { changes.append(try reader.change()) }
            self =
                kind == .commit
                ? .commit(service: service, changes: changes)
                : .commitPart(service: service, changes: changes)
        case .deleteAll: self = .deleteAll(service: try reader.service())
        case .history:
            let service = try reader.service()
            self = .history(service: service, key: try reader.key())
        case .undo:
            let service = try reader.service()
            let key = try reader.key()
            self = .undo(
                service: service, key: key,
                to: try reader.optional { (reader) throws(WireError) in try reader.generation() })
        case .subscribe: self = .subscribe(service: try reader.service())
        case .unlock: self = .unlock(try reader.unlockOrder())
        case .state: self = .state
        case .status: self = .status
        case .lock: self = .lock
        case .close: self = .close
        case .vaults: self = .vaults
        case .lockAll: self = .lockAll
        case .stop: self = .stop
        case .hello, .result, .part, .failure, .notHeld, .goodbye, .event: throw .outOfBounds
        }
    }
}

extension WireWriter {
    fileprivate func append(_ change: TokenChange) {
        append(text: change.key.name)
        switch change.action {
        case .store(let secret):
            append(UInt8(1))
            append(secret: secret)
        case .update: append(UInt8(2))
        case .delete: append(UInt8(3))
        case .rename(let key):
            append(UInt8(4))
            append(text: key.name)
        }
        append(change.details.policy) { append($0) }
        append(change.details.label) { append(text: $0) }
        append(change.details.attributes) { append($0) }
        switch change.details.expiry {
        case nil: append(UInt8(0))
        case .never: append(UInt8(1))
        case .at(let date):
            append(UInt8(2))
            append(date: date)
        }
        switch change.expectation {
        case .any: append(UInt8(0))
        case .absent: append(UInt8(1))
        case .generation(let generation):
            append(UInt8(2))
            append(generation)
        }
    }

    fileprivate func append(_ order: UnlockOrder) {
        append(order.stateDirectory) { append(path: $0) }
        append(order.idleTime) { append($0.wireNanoseconds) }
        append(flag: order.isTimeAsked)
        switch order.method {
        case .passphrase(let secret):
            append(UInt8(1))
            append(secret: secret)
        case .keyFile(let secret):
            append(UInt8(2))
            append(secret: secret)
        case .secretService(let secret):
            append(UInt8(3))
            append(secret: secret)
        // The text form of a recovery key unlocks wherever a passphrase does.
        case .recoveryKey(let key):
            append(UInt8(1))
            append(secret: key.text)
        }
    }
}

extension WireReader {
    fileprivate mutating func change() throws(WireError) -> TokenChange {
        let key = try key()
        let action: TokenChange.Action
        switch try integer(UInt8.self) {
        case 1: action = .store(try secret())
        case 2: action = .update
        case 3: action = .delete
        case 4: action = .rename(to: try self.key())
        default: throw .outOfBounds
        }
        var details = TokenDetails()
        details.policy = try optional { (reader) throws(WireError) in try reader.policy() }
        details.label = try optional { (reader) throws(WireError) in
            try reader.text(limit: AgentWire.maximumDetail)
        }
        details.attributes = try optional { (reader) throws(WireError) in try reader.attributes() }
        switch try integer(UInt8.self) {
        case 0: break
        case 1: details.expiry = .never
        case 2: details.expiry = .at(try date())
        default: throw .outOfBounds
        }
        let expectation: TokenChange.Expectation
        switch try integer(UInt8.self) {
        case 0: expectation = .any
        case 1: expectation = .absent
        case 2: expectation = .generation(try generation())
        default: throw .outOfBounds
        }
        return TokenChange(key: key, action: action, details: details, expectation: expectation)
    }

    fileprivate mutating func unlockOrder() throws(WireError) -> UnlockOrder {
        let state = try optional { (reader) throws(WireError) in try reader.path() }
        let idle = try optional { (reader) throws(WireError) in try reader.integer(UInt64.self) }
        guard idle ?? 0 <= Duration.longestOnWire else { throw .outOfBounds }
        let isTimeAsked = try flag()
        let kind = try integer(UInt8.self)
        let secret = try secret()
        let method: UnlockMethod
        switch kind {
        case 1: method = .passphrase(secret)
        case 2: method = .keyFile(secret)
        case 3: method = .secretService(secret)
        default: throw .outOfBounds
        }
        return UnlockOrder(
            method: method, stateDirectory: state, idleTime: idle.map { .nanoseconds(Int64($0)) },
            isTimeAsked: isTimeAsked)
    }
}

extension Duration {
    /// Nearly three centuries, in nanoseconds.
    fileprivate static var longestOnWire: UInt64 { 9_000_000_000_000_000_000 }

    /// The duration in nanoseconds, up to ``longestOnWire``.
    fileprivate var wireNanoseconds: UInt64 { min(nanoseconds, Self.longestOnWire) }
}
