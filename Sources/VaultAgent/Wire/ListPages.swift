package import TokenVault

// A listing is sent in pages, since a vault may have more items than fit into a frame.
extension WireWriter {
    /// Whether the next item should go into another page.
    package var isPageFull: Bool { length >= AgentWire.pageLength }

    /// Adds the listing's fields other than its items. They are in the last page only, before its items.
    package func appendEnd(of listing: TokenListing) {
        append(UInt64(max(listing.hidden, 0)))
        let reasons = listing.hiddenReasons.sorted { $0.key.rawValue < $1.key.rawValue }
        append(UInt16(reasons.count))
        for (code, count) in reasons {
            append(text: code.rawValue)
            append(UInt64(max(count, 0)))
        }
    }
}

extension WireReader {
    /// Reads a page into the listing. Its items extend to the end of the frame.
    package mutating func addPage(to listing: inout TokenListing, isLast: Bool) throws(WireError) {
        if isLast {
            listing.hidden = try count()
            let reasons = Int(try integer(UInt16.self))
            listing.hiddenReasons = [:]
            for _ in 0..<reasons {
                let name = try text(limit: AgentWire.maximumText)
                let count = try count()
                // A reason that only a newer agent knows is left out of the counts.
                if let code = TokenStorageError.Code(rawValue: name) { listing.hiddenReasons[code] = count }
            }
        }
        while remaining > 0 { listing.items.append(try metadata()) }
    }

    private mutating func count() throws(WireError) -> Int {
        guard let count = Int(exactly: try integer(UInt64.self)) else { throw .outOfBounds }
        return count
    }
}
