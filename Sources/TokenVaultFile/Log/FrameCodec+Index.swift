internal import TokenVaultCore
internal import TokenVaultCrypto

// The index is sealed under a key of its own. The summary is bound to its place in one epoch of the log, and
// the pages to their summary.
extension FrameCodec {
    /// Seals a page where it lies.
    func sealPage(
        _ bytes: inout [UInt8], at range: Range<Int>, number: Int, of index: [UInt8], nonces: inout Nonces
    ) throws(TokenStorageError) {
        let isSealed = AuthenticatedEncryption.seal(
            &bytes, at: range, key: keys.index, associatedData: pageData(number, index), nonces: &nonces)
        guard isSealed else { throw .file(.closed) }
    }

    /// Opens a page; `nil` when it does not authenticate.
    func openPage(
        _ sealed: [UInt8], number: Int, of index: [UInt8]
    ) throws(TokenStorageError) -> [UInt8]? {
        switch AuthenticatedEncryption.openPublic(
            sealed, at: 0..<sealed.count, key: keys.index, associatedData: pageData(number, index))
        {
        case .wiped: throw .file(.closed)
        case .forged: return nil
        case .plaintext(let plaintext): return plaintext
        }
    }

    func sealSummary(
        _ summary: IndexSummary, at offset: Int, epoch: Epoch
    ) throws(TokenStorageError) -> [UInt8] {
        guard
            let sealed = AuthenticatedEncryption.seal(
                summary.encoded(), key: keys.index, associatedData: summaryData(offset, epoch))
        else { throw .file(.closed) }
        return sealed
    }

    /// Opens the summary of an index whose last frame is at `offset`; `nil` when it does not belong there.
    func openSummary(
        _ sealed: [UInt8], at offset: Int, epoch: Epoch
    ) throws(TokenStorageError) -> IndexSummary? {
        switch AuthenticatedEncryption.openPublic(
            sealed, at: 0..<sealed.count, key: keys.index, associatedData: summaryData(offset, epoch))
        {
        case .wiped: throw .file(.closed)
        case .forged: return nil
        case .plaintext(let plaintext): return try? IndexSummary(decoding: plaintext)
        }
    }

    private func pageData(_ number: Int, _ index: [UInt8]) -> [UInt8] {
        var writer = ByteWriter(reserving: 72)
        writer.append(Array("tokenvault 1 index page".utf8) + [0])
        writer.append(vault.bytes)
        writer.append(index)
        writer.append(UInt64(number))
        return writer.bytes
    }

    private func summaryData(_ offset: Int, _ epoch: Epoch) -> [UInt8] {
        var writer = ByteWriter(reserving: 80)
        writer.append(Array("tokenvault 1 index summary".utf8) + [0])
        writer.append(vault.bytes)
        epoch.append(to: &writer)
        writer.append(UInt64(offset))
        return writer.bytes
    }
}
