package import TokenVaultPlatform

/// Finds frames in received bytes.
package enum WireFrame {
    /// Returns the range of the first frame's payload; `nil` when the frame is incomplete. Throws
    /// `outOfBounds` as soon as the length shows that the payload is too short or too long.
    package static func payload(in buffer: WipedBuffer) throws(WireError) -> Range<Int>? {
        guard let announced = buffer.integer(at: 0, as: UInt32.self) else { return nil }
        guard (5...UInt32(AgentWire.maximumPayload)).contains(announced) else { throw .outOfBounds }
        let end = AgentWire.prefixLength + Int(announced)
        return buffer.count >= end ? AgentWire.prefixLength..<end : nil
    }

    /// Returns the end of the first frame; `nil` when its length has not arrived.
    package static func announced(in buffer: WipedBuffer) -> Int? {
        buffer.integer(at: 0, as: UInt32.self).map { AgentWire.prefixLength + Int($0) }
    }

    /// Returns the kind of the frame with its payload at `range`.
    package static func kind(of buffer: WipedBuffer, _ range: Range<Int>) throws(WireError) -> AgentWire.Kind
    {
        guard let number = buffer.integer(at: range.lowerBound + 4, as: UInt8.self),
            let kind = AgentWire.Kind(rawValue: number)
        else { throw .outOfBounds }
        return kind
    }
}
