import Measuring
import TokenVault

/// Somebody who stores values of 1 KiB and looks them up.
final class Participant {
    let name: String
    /// How many items it gets of as many as there are to be: those that take half a second for each get few.
    let share: (Int) -> Int
    /// In how many rounds it takes part once.
    let interval: Int
    private let store: (String) throws -> Double
    private let lookup: (String) throws -> Double
    private(set) var stores = Measurement()
    private(set) var lookups = Measurement()
    private var items = 0

    /// One of ours.
    init(_ name: String, _ storage: some BlockingTokenStorage, share: @escaping (Int) -> Int = { $0 }) {
        (self.name, self.share, interval) = (name, share, 1)
        let value = Secret([UInt8](repeating: 0x61, count: 1_024))
        store = { key in
            let key = TokenKey(key)
            let start = ContinuousClock.now
            _ = try storage.store(value, for: key)
            return start.microseconds
        }
        lookup = { key in
            let key = TokenKey(key)
            let start = ContinuousClock.now
            let found = try storage.secret(for: key)
            let time = start.microseconds
            guard found == value else { throw POSIXFailure(number: 5) }
            return time
        }
    }

    /// Another program.
    init(_ name: String, _ loop: Loop, share: @escaping (Int) -> Int = { $0 }, interval: Int = 1) {
        (self.name, self.share, self.interval) = (name, share, interval)
        store = { loop.time("store", $0) }
        lookup = { loop.time("lookup", $0) }
    }

    /// What the machine takes for it, without a name to look for.
    init(_ name: String, store: @escaping () throws -> Void, lookup: @escaping () throws -> Void) {
        (self.name, share, interval) = (name, { _ in 1 }, 1)
        func timed(_ body: @escaping () throws -> Void) -> (String) throws -> Double {
            { _ in
                let start = ContinuousClock.now
                try body()
                return start.microseconds
            }
        }
        (self.store, self.lookup) = (timed(store), timed(lookup))
    }

    /// Stores as many as it gets of `count`, and forgets what was timed.
    func fill(to count: Int) throws {
        let count = share(count)
        while items < count {
            _ = try store("item-\(items)")
            items += 1
        }
        (stores, lookups) = (Measurement(), Measurement())
    }

    /// Looks some up and stores two anew: whoever was at it last has left nothing in the caches for the first.
    func takePart(in round: Int) throws {
        guard round % interval == 0 else { return }
        for number in 0..<(interval == 1 ? 8 : 1) {
            lookups.add(try lookup("item-\((round * 7 + number * 3) % items)"))
        }
        for number in 0..<2 { stores.add(try store("item-\((round * 7 + number) % items)")) }
    }
}
