internal import TokenVaultPlatform

/// Standard output behind one buffer that never grows. The buffer is wiped, because secrets pass through it.
///
/// A failure is stored and reported at the end, so a full or closed standard output never exits 0.
package final class Output {
    private var buffer: [UInt8] = []
    private let capacity = 16 << 10
    private var failure: SystemFailure?
    private var wrote = false

    package init() {}

    /// Writes bytes.
    package func write(_ bytes: RawSpan) {
        flush()
        guard failure == nil, bytes.byteCount > 0 else { return }
        wrote = true
        do { try StandardStream.output.write(bytes) } catch { failure = error }
    }

    /// Writes a few bytes.
    package func write(_ bytes: some Sequence<UInt8>) {
        if buffer.capacity < capacity { buffer.reserveCapacity(capacity) }
        for byte in bytes {
            if buffer.count == capacity { flush() }
            buffer.append(byte)
        }
    }

    /// Writes text.
    package func write(_ text: String) { write(text.utf8) }

    /// Writes text and a newline.
    package func line(_ text: String) {
        write(text.utf8)
        write(CollectionOfOne(UInt8(ascii: "\n")))
    }

    /// Writes the buffered bytes. Throws when these or earlier bytes did not reach standard output.
    package func deliver() throws(CommandFailure) {
        flush()
        if let failure { throw .output(failure) }
    }

    /// Writes the buffered bytes. Closes standard output if anything was written to it.
    package func finish() throws(CommandFailure) {
        flush()
        if failure == nil, wrote {
            do { try StandardStream.output.finish() } catch { failure = error }
        }
        if let failure { throw .output(failure) }
    }

    private func flush() {
        guard !buffer.isEmpty else { return }
        if failure == nil {
            wrote = true
            do { try StandardStream.output.write(buffer) } catch { failure = error }
        }
        for index in buffer.indices { buffer[index] = 0 }
        buffer.removeAll(keepingCapacity: true)
    }
}
