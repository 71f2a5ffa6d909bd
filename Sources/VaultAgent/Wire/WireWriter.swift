package import TokenVault
package import TokenVaultPlatform

#if canImport(FoundationEssentials)
package import FoundationEssentials
#endif

/// Writes frames into a buffer that is wiped after it was sent.
package struct WireWriter {
    package let buffer: WipedBuffer
    private var start = 0

    package init(_ buffer: WipedBuffer) { self.buffer = buffer }

    /// Begins a frame.
    package mutating func begin(_ kind: AgentWire.Kind, id: UInt32) {
        start = buffer.count
        buffer.append(UInt32(0))
        buffer.append(id)
        buffer.append(kind.rawValue)
    }

    /// Ends the frame. Removes it and returns false if its payload is too long.
    package func end() -> Bool {
        let length = buffer.count - start - AgentWire.prefixLength
        guard length <= AgentWire.maximumPayload else {
            buffer.truncate(to: start)
            return false
        }
        buffer.replace(at: start, with: UInt32(length))
        return true
    }

    /// Changes the kind of the frame.
    package func change(to kind: AgentWire.Kind) {
        buffer.replace(at: start + AgentWire.prefixLength + 4, with: kind.rawValue)
    }

    /// Whether the frame is too long.
    package var isTooLong: Bool { length > AgentWire.prefixLength + AgentWire.maximumPayload }

    /// The length of the frame so far.
    package var length: Int { buffer.count - start }

    package func append(_ value: some FixedWidthInteger & UnsignedInteger) { buffer.append(value) }

    package func append(flag: Bool) { buffer.append(UInt8(flag ? 1 : 0)) }

    /// Appends a text, preceded by its length in bytes of UTF-8.
    package func append(text: String) {
        buffer.append(UInt32(text.utf8.count))
        buffer.append(utf8: text)
    }

    /// Appends bytes, preceded by their number.
    package func append(bytes: [UInt8]) {
        buffer.append(UInt32(bytes.count))
        buffer.append(bytes)
    }

    package func append(path: FilePath) { append(bytes: path.bytes) }

    package func append(secret: Secret) {
        buffer.append(UInt32(secret.count))
        secret.withBytes { buffer.append($0) }
    }

    /// Appends a flag, and the value if there is one.
    package func append<Value>(_ value: Value?, _ write: (Value) -> Void) {
        append(flag: value != nil)
        if let value { write(value) }
    }

    /// Appends all bits of a date, so that the same date is read.
    package func append(date: Date) { buffer.append(date.timeIntervalSinceReferenceDate.bitPattern) }

    package func append(_ generation: Generation) { buffer.append(generation.rawValue) }
}
