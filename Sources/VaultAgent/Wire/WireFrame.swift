package import TokenVaultPlatform

/// Where frames begin and end in what has come.
package enum WireFrame {
    /// Where the payload of the first frame is; `nil` when not all of it has come. Throws `outOfBounds` for one that is
    /// too short for any kind, or longer than any may be, as soon as its length is there.
    package static func payload(in buffer: WipedBuffer) throws(WireError) -> Range<Int>? {
        guard let announced = buffer.integer(at: 0, as: UInt32.self) else { return nil }
        guard (5...UInt32(AgentWire.maximumPayload)).contains(announced) else { throw .outOfBounds }
        let end = AgentWire.prefixLength + Int(announced)
        return buffer.count >= end ? AgentWire.prefixLength..<end : nil
    }

    /// Where the first frame ends, if it says so yet.
    package static func announced(in buffer: WipedBuffer) -> Int? {
        buffer.integer(at: 0, as: UInt32.self).map { AgentWire.prefixLength + Int($0) }
    }

    /// The kind of the frame whose payload is at `range`.
    package static func kind(of buffer: WipedBuffer, _ range: Range<Int>) throws(WireError) -> AgentWire.Kind
    {
        guard let number = buffer.integer(at: range.lowerBound + 4, as: UInt8.self),
            let kind = AgentWire.Kind(rawValue: number)
        else { throw .outOfBounds }
        return kind
    }
}
