import Foundation

@testable import TokenVaultCore
@testable import TokenVaultCrypto
@testable import TokenVaultFile

/// Gives hostile bytes to each decoder of the vault's format. None may crash or hang, and what one accepts
/// must come out the same when it is encoded and read again.
///
/// The first byte of an input chooses the decoder; the rest is what it reads. libFuzzer calls this.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let input = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    guard let choice = input.first, let decoder = FormatDecoder(rawValue: choice) else { return -1 }
    decoder.read(Array(input.dropFirst()))
    return 0
}

/// Each decoder that reads bytes which others may have written.
enum FormatDecoder: UInt8 {
    case keybag, frame, header, genesis, keybagRecord, metadata, body, anchor, indexRecord, indexPage
    case indexSummary, indexPointer, itemLine, exportHeader, exportMessage, recoveryKey, keyringCommit

    func read(_ bytes: [UInt8]) {
        switch self {
        case .keybag: readKeybag(bytes)
        case .frame: _ = Frame.length(ofPrefix: bytes)
        case .header:
            let header = try? FrameHeader(decoding: fitted(bytes, FrameHeader.length))
            if let header { require(try? FrameHeader(decoding: header.encoded()), equals: header) }
        case .genesis:
            let record = try? GenesisRecord(decoding: bytes)
            if let record { require(try? GenesisRecord(decoding: record.encoded()), equals: record) }
        case .keybagRecord:
            let record = try? KeybagRecord(decoding: bytes)
            if let record { require(try? KeybagRecord(decoding: record.encoded()), equals: record) }
        case .metadata: readMetadata(bytes)
        case .body: _ = try? ItemCoding.decodeBody(SecretBytes(copying: bytes))
        case .indexRecord:
            var reader = ByteReader(fitted(bytes, IndexRecord.length))
            guard let record = try? IndexRecord(&reader) else { return }
            var writer = ByteWriter()
            record.append(to: &writer)
            precondition(writer.bytes == fitted(bytes, IndexRecord.length), "a record has two encodings")
            _ = record.entry.bodyRange
        case .indexPage: readPage(bytes)
        case .indexSummary:
            let summary = try? IndexSummary(decoding: bytes)
            if let summary { require(try? IndexSummary(decoding: summary.encoded()), equals: summary) }
        case .indexPointer: readPointer(bytes)
        case .itemLine: readLine(bytes)
        case .exportHeader:
            let header = try? ExportHeader(decoding: fitted(bytes, ExportHeader.length))
            if let header { require(try? ExportHeader(decoding: header.encoded()), equals: header) }
        case .exportMessage:
            guard let message = try? ExportMessage(decoding: SecretBytes(copying: bytes)) else { return }
            precondition(
                (try? ExportMessage(decoding: message.encoded())) != nil, "a message is not read again")
        case .recoveryKey:
            let key = try? RecoveryKey(Secret(bytes))
            if let key { require(try? RecoveryKey(key.text).text, equals: key.text) }
        case .keyringCommit:
            guard let commit = try? CommitIntent(decoding: SecretBytes(copying: bytes)) else { return }
            let again = try? CommitIntent(decoding: commit.encode())
            require(again?.outcomes.map(\.key), equals: commit.outcomes.map(\.key))
        case .anchor: _ = try? AnchorSlot(decoding: fitted(Array("TVANCHR1".utf8) + bytes, AnchorSlot.length))
        }
    }

    /// A copy with the right length, beginning and checksum, as one would make who wants to get past them.
    private func readKeybag(_ bytes: [UInt8]) {
        let digest = 32
        var copy = fitted(Array("TKNVAULT".utf8) + bytes, VaultFormat.keybagLength - digest)
        copy += Hash.digest(copy, length: digest)
        guard let keybag = try? Keybag(decoding: copy) else { return }
        guard let again = keybag.encoded() else { preconditionFailure("a keybag has outgrown its copy") }
        require(try? Keybag(decoding: again), equals: keybag)
        precondition(again == copy, "a keybag has two encodings")
    }

    /// The page of one who holds the log key: records in any order, and what is no record.
    private func readPage(_ bytes: [UInt8]) {
        let count = Int(bytes.first ?? 0) % (IndexFormat.recordsPerPage + 1)
        let plaintext = fitted(Array(bytes.dropFirst()), IndexFormat.plaintextLength)
        guard let page = try? IndexPage(decoding: plaintext, count: count, fence: 0) else { return }
        for position in 0..<count {
            let item = page.item(at: position)
            precondition(
                (0...count).contains(page.firstPosition(notBefore: item)), "a search leaves its page")
            _ = try? page.record(at: position)
        }
    }

    /// A sector with the right beginning and checksum.
    private func readPointer(_ bytes: [UInt8]) {
        _ = try? IndexPointer(decoding: fitted(bytes, IndexPointer.length))
        let front = Array("TVINDEX1".utf8) + fitted(bytes, 8)
        let sector = fitted(front + Hash.digest(front, length: 16), IndexPointer.length)
        guard let pointer = try? IndexPointer(decoding: sector) else { return }
        precondition(pointer.encoded() == sector, "a pointer has two encodings")
    }

    /// What is taken for an item is JSON to Foundation's reader too, with the same key and value.
    private func readLine(_ bytes: [UInt8]) {
        struct Line: Decodable {
            var key: String
            var value: String?
            var valueBase64: Data?
        }
        guard let line = try? ItemLine(bytes, in: 0..<bytes.count, ignoresUnknown: true) else { return }
        guard let other = try? JSONDecoder().decode(Line.self, from: Data(bytes)) else {
            preconditionFailure("what is taken for an item is no JSON")
        }
        precondition(other.key.utf8.elementsEqual(line.key.utf8), "another key")
        let value = other.value.map { Secret(utf8: $0) } ?? other.valueBase64.map { Secret($0) }
        require(value, equals: line.secret)
    }

    private func readMetadata(_ bytes: [UInt8]) {
        func decode(_ bytes: [UInt8]) -> StoredMetadata? {
            try? ItemCoding.decodeMetadata(bytes, policy: .whenUnlocked, generation: 1)
        }
        let read = decode(bytes)
        require(ItemCoding.isMetadata(bytes, count: bytes.count), equals: read != nil)
        guard let read else { return }
        guard let second = decode(ItemCoding.metadata(read)) else {
            preconditionFailure("metadata is not read again")
        }
        precondition(
            second.metadata.key == read.metadata.key && second.metadata.attributes == read.metadata.attributes
                && second.policyProof == read.policyProof, "metadata changed")
    }

    private func fitted(_ bytes: [UInt8], _ length: Int) -> [UInt8] {
        Array(bytes.prefix(length)) + [UInt8](repeating: 0, count: max(0, length - bytes.count))
    }

    private func require<Value: Equatable>(_ value: Value?, equals other: Value) {
        precondition(value == other, "a value changed when it was encoded and read again")
    }
}
