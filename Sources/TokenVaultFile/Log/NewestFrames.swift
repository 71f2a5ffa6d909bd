internal import TokenVaultCore

/// The place of a surveyed frame, in 32 bits.
struct FramePlace: Equatable, Sendable {
    // A chunk has at most 1,213 frames, each of at least ``Frame/overhead`` bytes.
    private static let indexBits: UInt32 = 12
    fileprivate let number: UInt32

    fileprivate init(number: UInt32) { self.number = number }

    static let mostChunks = 1 << (32 - indexBits) - 1

    /// Creates the place of a frame in a chunk below ``SurveyedLog/mostChunks``.
    init(chunk: Int, index: Int) {
        precondition(chunk < Self.mostChunks && index < 1 << Self.indexBits)
        number = UInt32(chunk) << Self.indexBits | UInt32(index)
    }

    var chunk: Int { Int(number >> Self.indexBits) }
    var index: Int { Int(number & (1 << Self.indexBits - 1)) }
}

/// The newest frame of every item: a hash table with a word for each.
struct NewestFrames: Sendable {
    // A slot is 32 bits of the item's name, and the frame's place plus one in 32 more; zero is free. The name
    // is a keyed hash already and spreads well. Slots are in the order of names, like the pages of an index,
    // because a whole index is looked up at once.
    private var slots: [UInt64]
    // A holder of the log key can choose names that collide. Random factors then spread the names
    // (Dietzfelbinger and others, "A Reliable Randomized Algorithm for the Closest-Pair Problem", 1997).
    private var factors: (high: UInt64, low: UInt64)?
    private var shift: UInt64
    private var used = 0
    private(set) var items = 0

    init(expecting count: Int) {
        var bits: UInt64 = 10
        while 3 << bits < 4 * min(count, 1 << 22) { bits += 1 }
        slots = [UInt64](repeating: 0, count: 1 << bits)
        shift = 64 - bits
    }

    /// The most slots to look at for a name: with names that spread, none takes a tenth of that.
    private static let mostProbes = 4_096

    /// Takes in a frame that is newer than all before it.
    mutating func note(_ frame: SurveyedFrame, at place: FramePlace, in chunks: [[SurveyedFrame]]) {
        if 4 * used >= 3 * slots.count {
            shift -= 1
            refill(2 * slots.count, chunks)
        }
        var slot = slot(of: frame.item, in: chunks)
        if factors == nil, distance(of: frame.item, to: slot) > Self.mostProbes {
            factors = (.random(in: 0 ... .max) | 1, .random(in: 0 ... .max) | 1)
            refill(slots.count, chunks)
            slot = self.slot(of: frame.item, in: chunks)
        }
        if let old = Self.place(in: slots[slot]) {
            if chunks[old.chunk][old.index].isItem { items -= 1 }
        } else {
            used += 1
        }
        if frame.isItem { items += 1 }
        slots[slot] = Self.word(frame.item, place)
    }

    func place(of item: ItemIdentifier, in chunks: [[SurveyedFrame]]) -> FramePlace? {
        Self.place(in: slots[slot(of: item, in: chunks)])
    }

    /// Returns the slot of `item`, or the free one where it belongs.
    private func slot(of item: ItemIdentifier, in chunks: [[SurveyedFrame]]) -> Int {
        let mask = slots.count - 1
        var slot = firstSlot(of: item)
        while let place = Self.place(in: slots[slot]) {
            if slots[slot] >> 32 == Self.tag(item), chunks[place.chunk][place.index].item == item { break }
            slot = (slot + 1) & mask
        }
        return slot
    }

    /// Returns the number of slots that a search for `item` looks at before the one where it is or belongs.
    func distance(of item: ItemIdentifier, in chunks: [[SurveyedFrame]]) -> Int {
        distance(of: item, to: slot(of: item, in: chunks))
    }

    private func distance(of item: ItemIdentifier, to slot: Int) -> Int {
        (slot &- firstSlot(of: item)) & (slots.count - 1)
    }

    /// Returns the slot where the search for `item` begins.
    private func firstSlot(of item: ItemIdentifier) -> Int {
        guard let factors else { return Int(truncatingIfNeeded: item.high &>> shift) }
        let hash = item.high &* factors.high &+ item.low &* factors.low
        return Int(truncatingIfNeeded: hash &>> shift)
    }

    private mutating func refill(_ count: Int, _ chunks: [[SurveyedFrame]]) {
        let old = slots
        slots = [UInt64](repeating: 0, count: count)
        for word in old {
            guard let place = Self.place(in: word) else { continue }
            slots[slot(of: chunks[place.chunk][place.index].item, in: chunks)] = word
        }
    }

    private static func tag(_ item: ItemIdentifier) -> UInt64 { item.low >> 32 }

    private static func word(_ item: ItemIdentifier, _ place: FramePlace) -> UInt64 {
        tag(item) << 32 | UInt64(place.number) + 1
    }

    private static func place(in word: UInt64) -> FramePlace? {
        let number = UInt32(truncatingIfNeeded: word)
        return number == 0 ? nil : FramePlace(number: number - 1)
    }
}
