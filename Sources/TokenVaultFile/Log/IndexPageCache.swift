internal import TokenVaultCore

/// Opened pages of an index, so that looking an item up again needs no reading and opening. A page has one
/// place in it, and a page with the same place replaces it.
struct IndexPageCache: Sendable {
    /// The most pages. 2,048 pages of 4 KiB take 8 MiB: all of an index of 100,000 items.
    static let capacity = 2_048

    private let capacity: Int
    private var pages: [Int: (number: Int, page: IndexPage)] = [:]

    init(capacity: Int = IndexPageCache.capacity) { self.capacity = capacity }

    /// The number of held pages, at most the capacity.
    var count: Int { pages.count }

    /// Returns the page of that number; `nil` when it is not held.
    func page(_ number: Int) -> IndexPage? {
        guard let held = pages[number % capacity], held.number == number else { return nil }
        return held.page
    }

    mutating func keep(_ page: IndexPage, as number: Int) { pages[number % capacity] = (number, page) }
}
