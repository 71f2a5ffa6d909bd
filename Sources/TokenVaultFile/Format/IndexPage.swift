internal import TokenVaultCore

/// A page of the index, opened: records in the order of their items, an item's newest before its older ones.
struct IndexPage: Sendable {
    let count: Int
    private let bytes: [UInt8]

    /// Decodes the plaintext of a page that has `count` records. The first is of an item that begins with `fence`, the last
    /// is not behind `next`, where the next page begins. Items out of order would be listed and not found.
    init(decoding bytes: [UInt8], count: Int, fence: UInt64, next: UInt64? = nil) throws(FormatError) {
        guard bytes.count == IndexFormat.plaintextLength, count >= 0, count <= IndexFormat.recordsPerPage
        else {
            throw .outOfBounds
        }
        self.bytes = bytes
        self.count = count
        guard count > 0 else { return }
        var last = item(at: 0)
        guard last.high == fence else { throw .outOfBounds }
        for position in 1..<count {
            let item = item(at: position)
            guard !(item < last) else { throw .outOfBounds }
            last = item
        }
        guard last.high <= next ?? .max else { throw .outOfBounds }
    }

    /// Returns the item of a record.
    func item(at position: Int) -> ItemIdentifier {
        let start = position * IndexRecord.length
        return ItemIdentifier(high: integer(at: start), low: integer(at: start + 8))
    }

    func record(at position: Int) throws(FormatError) -> IndexRecord {
        let start = position * IndexRecord.length
        var reader = ByteReader(bytes, in: start..<start + IndexRecord.length)
        return try IndexRecord(&reader)
    }

    /// Returns the position of the first record that is not of an item before `item`; the number of records
    /// when all are.
    func firstPosition(notBefore item: ItemIdentifier) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if self.item(at: middle) < item { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private func integer(at offset: Int) -> UInt64 {
        var reader = ByteReader(bytes, in: offset..<offset + 8)
        return (try? reader.integer(UInt64.self)) ?? 0
    }
}

extension ItemIdentifier: Comparable {
    static func < (left: ItemIdentifier, right: ItemIdentifier) -> Bool {
        left.high == right.high ? left.low < right.low : left.high < right.high
    }
}
