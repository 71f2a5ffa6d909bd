package import TokenVaultPlatform

extension SecretBytes {
    /// Creates a copy of a part of a buffer; `nil` when the part is not inside.
    package convenience init?(copying buffer: WipedBuffer, in range: Range<Int>) {
        guard range.lowerBound >= 0, range.upperBound <= buffer.count else { return nil }
        self.init(capacity: range.count) { target in
            _ = buffer.withBytes(in: range) { span in span.withUnsafeBytes { target.copyBytes(from: $0) } }
            return range.count
        }
    }
}
