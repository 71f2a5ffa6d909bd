@testable import TokenVaultCore
@testable import TokenVaultFile
@testable import TokenVaultPlatform
@testable import VaultAgent

/// Gives hostile bytes to what reads the agent's protocol, on both of its sides. Nothing may crash or hang, and what is
/// accepted must come out as the same bytes when it is written again.
///
/// The first byte of an input chooses the reader; the rest is what it reads. libFuzzer calls this.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let input = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    guard let choice = input.first, let message = AgentMessage(rawValue: choice) else { return -1 }
    do throws(WireError) {
        try message.read(Array(input.dropFirst()))
    } catch {
        return 0
    }
    return 0
}

/// Each thing that one side reads of what the other one wrote.
enum AgentMessage: UInt8 {
    case stream, request, hello, page, item, commit, error, event, facts, status

    func read(_ bytes: [UInt8]) throws(WireError) {
        let buffer = WipedBuffer(capacity: 64)
        buffer.append(bytes)
        var reader = WireReader(buffer, in: 0..<buffer.count)
        switch self {
        case .stream: try readStream(buffer)
        case .request:
            let request = try AgentRequest(&reader)
            requireSame(bytes) { writer in
                precondition(request.write(to: &writer), "a request that was read is too long to be written")
            } after: {
                AgentWire.prefixLength
            }
        case .hello: _ = try reader.hello()
        case .page:
            var listing = TokenListing(items: [])
            try reader.addPage(to: &listing, isLast: bytes.first.map { $0 & 1 == 0 } ?? true)
        case .item:
            let item = try reader.item()
            try reader.finish()
            requireSame(bytes) { $0.append(item) }
        case .commit:
            let commit = try reader.commit()
            try reader.finish()
            requireSame(bytes) { $0.append(commit) }
        // A code or text of another version does not encode to the same bytes again.
        case .error: _ = try reader.error()
        case .event:
            let event = try reader.event()
            try reader.finish()
            requireSame(bytes) { $0.append(event) }
        case .facts:
            let facts = try reader.facts()
            try reader.finish()
            requireSame(bytes) { $0.append(facts) }
        case .status:
            let status = try reader.status()
            try reader.finish()
            requireSame(bytes) { $0.append(status) }
        }
    }

    /// Frames one after the other, as the agent takes them from a connection.
    private func readStream(_ buffer: WipedBuffer) throws(WireError) {
        var known: KnownVault?
        while let range = try WireFrame.payload(in: buffer) {
            defer { buffer.removeFirst(range.upperBound) }
            if try WireFrame.kind(of: buffer, range) == .hello { continue }
            var (reader, fresh) = (WireReader(buffer, in: range), WireReader(buffer, in: range))
            let vault = try AgentRequest(&reader, knowing: &known).vault
            precondition(try AgentRequest(&fresh).vault == vault, "what was asked before matters")
        }
    }

    private func requireSame(
        _ bytes: [UInt8], _ write: (inout WireWriter) -> Void, after: () -> Int = { 0 }
    ) {
        let buffer = WipedBuffer(capacity: 64)
        var writer = WireWriter(buffer)
        write(&writer)
        precondition(buffer.array(in: after()..<buffer.count) == bytes, "a value has two encodings")
    }
}
