internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultPlatform

/// An index block of a file: finds an item by reading one page. Memory holds the table of the pages' first
/// items, and a bounded number of opened pages.
final class IndexReader: Sendable {
    let summary: IndexSummary
    /// The offset of its last frame.
    let offset: Int
    /// The length of the index's frames.
    let length: Int

    private let file: any DiskFile
    private let codec: FrameCodec
    private let cache = Mutex(IndexPageCache())

    /// Opens the index whose last frame is `frame`; `nil` when it is not an index of this epoch of the log,
    /// or is damaged.
    init?(
        _ frame: ScannedFrame, in file: any DiskFile, codec: FrameCodec, epoch: Epoch
    ) throws(TokenStorageError) {
        let header = frame.header
        var scanner = LogScanner(file: file, codec: codec, chunk: 4 << 10)
        guard header.type == RecordType.index.rawValue, header.metadataLength == 0,
            try scanner.isWhole(frame)
        else { return nil }
        let place = frame.offset + Frame.contentOffset
        guard let sealed = scanner.bytes(at: place, header.bodyLength),
            let summary = try codec.openSummary(sealed, at: frame.offset, epoch: epoch),
            summary.start >= VaultFormat.logStart,
            summary.start + IndexFormat.length(ofPages: summary.pages) == frame.offset
        else { return nil }
        self.summary = summary
        self.file = file
        self.codec = codec
        offset = frame.offset
        length = frame.end - summary.start
    }

    /// Returns the newest value of `item`; `nil` when it has none. Throws `corrupt` for a page that does not
    /// open.
    func newest(_ item: ItemIdentifier) throws(TokenStorageError) -> IndexEntry? {
        var newest: IndexEntry?
        try forEach(of: item) { record in
            if record.isNewest { newest = record.entry }
            return false
        }
        return newest
    }

    /// Returns all records of `item`, its newest first.
    func records(of item: ItemIdentifier) throws(TokenStorageError) -> [IndexRecord] {
        var records: [IndexRecord] = []
        try forEach(of: item) { record in
            records.append(record)
            return true
        }
        return records
    }

    /// Runs `body` for the records of `item` until it returns false.
    private func forEach(
        of item: ItemIdentifier, _ body: (IndexRecord) -> Bool
    ) throws(TokenStorageError) {
        var number = firstPage(of: item)
        while number < summary.pages, number == 0 || summary.fences[number] <= item.high {
            let page = try page(number)
            var position = page.firstPosition(notBefore: item)
            while position < page.count {
                guard page.item(at: position) == item else { return }
                guard body(try record(position, of: page, number)) else { return }
                position += 1
            }
            number += 1
        }
    }

    /// Returns the page where the records of `item` begin, if there are any, or the one before that.
    private func firstPage(of item: ItemIdentifier) -> Int {
        var low = 0
        var high = summary.pages
        while low < high {
            let middle = (low + high) / 2
            if summary.fences[middle] < item.high { low = middle + 1 } else { high = middle }
        }
        return max(0, low - 1)
    }

    /// Runs `body` for every record, in the order of items.
    func forEach(_ body: (IndexRecord) throws(TokenStorageError) -> Void) throws(TokenStorageError) {
        try forEach(ofPages: 0..<summary.pages, body)
    }

    /// Runs `body` for every record of some pages, in the order of items.
    func forEach(
        ofPages pages: Range<Int>, _ body: (IndexRecord) throws(TokenStorageError) -> Void
    ) throws(TokenStorageError) {
        for number in pages {
            let kept = cache.withLock { $0.page(number) }
            let page = if let kept { kept } else { try opened(number) }
            for position in 0..<page.count { try body(try record(position, of: page, number)) }
        }
    }

    private func record(
        _ position: Int, of page: IndexPage, _ number: Int
    ) throws(TokenStorageError) -> IndexRecord {
        do { return try page.record(at: position) } catch { throw damage(number) }
    }

    private func page(_ number: Int) throws(TokenStorageError) -> IndexPage {
        if let page = cache.withLock({ $0.page(number) }) { return page }
        let page = try opened(number)
        cache.withLock { $0.keep(page, as: number) }
        return page
    }

    private func opened(_ number: Int) throws(TokenStorageError) -> IndexPage {
        let (file, place) = (file, offset(of: number))
        let sealed = try onDisk { () throws(SystemFailure) in
            try file.read(IndexFormat.pageLength, at: place)
        }
        let count = min(IndexFormat.recordsPerPage, summary.records - number * IndexFormat.recordsPerPage)
        guard let plaintext = try codec.openPage(sealed, number: number, of: summary.identifier),
            let page = try? IndexPage(
                decoding: plaintext, count: count, fence: summary.fences[number],
                next: number + 1 < summary.pages ? summary.fences[number + 1] : nil)
        else { throw damage(number) }
        return page
    }

    private func offset(of page: Int) -> Int { summary.start + IndexFormat.offset(ofPage: page) }

    private func damage(_ page: Int) -> TokenStorageError {
        .damage(at: offset(of: page), .indexPage)
    }
}
