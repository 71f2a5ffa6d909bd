import Glibc
import TestLanes
import Testing
import TokenVault

/// Three devices share a vault through a folder, and an adversary puts any file that ever was at any device's path.
///
/// `make test-all` takes at least 100,000 steps; `TOKENVAULT_FRESHNESS_SEED` and `TOKENVAULT_FRESHNESS_STEPS` repeat a run. The
/// test expects a history without a bound. The file lists 8,192 commits, and a run of 9,000 steps makes fewer.
@Suite(.tags(.endurance)) struct RandomFreshnessTests {
    private static let seeds: [UInt64] =
        number("TOKENVAULT_FRESHNESS_SEED").map { [UInt64($0)] }
        ?? Array(1...UInt64(number("TOKENVAULT_FRESHNESS_RUNS") ?? 3))
    private static let steps = number("TOKENVAULT_FRESHNESS_STEPS") ?? 700

    private static func number(_ name: String) -> Int? {
        getenv(name).flatMap { Int(String(cString: $0)) }
    }

    @Test(arguments: seeds) func nothingSeenIsSilentlyAbsent(seed: UInt64) throws {
        var run = try FreshnessRun(seed: seed)
        for step in 1...Self.steps {
            do {
                try run.step()
            } catch {
                Issue.record(
                    "seed \(seed), step \(step): \(error)\n\(run.log.suffix(12).joined(separator: "\n"))")
                return
            }
        }
        // A run that refuses nothing, or everything, would prove nothing.
        #expect(
            run.refused > Self.steps / 50 && run.opened > Self.steps / 10 && run.merged > Self.steps / 200
                && run.left > 0 && run.ownValues > Self.steps / 100,
            "\(run.refused), \(run.opened), \(run.merged), \(run.left), \(run.ownValues)")
    }

    /// A failure can be repeated: the same seed gives the same steps.
    @Test func aSeedRepeatsARun() throws {
        var runs = try [FreshnessRun(seed: 5), FreshnessRun(seed: 5)]
        for index in runs.indices { for _ in 1...150 { try runs[index].step() } }
        #expect(runs[0].log.count > 100 && runs[0].log == runs[1].log)
    }

    /// The check of this test: an anchor that knows nothing lets a file through that lacks what was seen.
    @Test func aDeviceWithoutAnAnchorIsCaught() throws {
        var run = try FreshnessRun(seed: 4)
        run.forgetsAnchors = true
        #expect(throws: FreshnessRun.Complaint.self) { for _ in 1...2_000 { try run.step() } }
    }
}

/// One run of the devices and the adversary, and what must be true.
private struct FreshnessRun {
    struct Complaint: Error, CustomStringConvertible { var description: String }

    /// What a file has: every change that it descends from, and the values that these come to.
    struct Version {
        var changes: Set<Int> = []
        /// The changes of copies that were merged without some of their items.
        var changesInPart: Set<Int> = []
        var values: [String: String] = [:]
        /// The change that each key is from, a deletion too.
        var origins: [String: Int] = [:]
        /// Whether it got new keys, after which a device that opens it renews its own.
        var isRotated = false
        /// The changes that removed a device with its items, each with the changes that the file had then.
        var removals: [Int: Set<Int>] = [:]
        /// The item of the device's own that the change at hand stored or deleted.
        var ownChange: (key: String, value: String?)?

        var allChanges: Set<Int> { changes.union(changesInPart) }
    }

    private let devices = [TestDevice(), TestDevice(), TestDevice()]
    private var random: SeededGenerator
    /// By the bytes of the file.
    private var versions: [[UInt8]: Version] = [:]
    private var files: [[UInt8]] = []
    /// What each device has stored or read.
    private var seen: [Set<Int>] = [[], [], []]
    /// The file that each device opened last.
    private var good: [[UInt8]] = []
    private var lastChange = 0
    /// The values of each device's own items as that device stored them last, with the change that did; `nil` where that is
    /// not known.
    private var own: [[String: (value: String, change: Int?)]] = [[:], [:], [:]]
    /// Whether each device has taken a file that lacks what it had seen.
    private var hasAdopted = [false, false, false]
    /// The removals that each device knew of when it stored items of its own.
    private var knownRemovals: [Set<Int>] = [[], [], []]
    /// Whether every device loses its anchor before it opens the file, as if there were none.
    var forgetsAnchors = false
    private(set) var refused = 0
    private(set) var opened = 0
    private(set) var merged = 0
    private(set) var left = 0
    private(set) var ownValues = 0
    private(set) var log: [String] = []

    init(seed: UInt64) throws {
        random = SeededGenerator(seed: seed)
        try devices[0].create()
        versions[devices[0].file] = Version()
        keep(0)
        for device in devices.dropFirst() { try device.receive(devices[0].file) }
        good = devices.map(\.file)
    }

    mutating func step() throws {
        let place = Int.random(in: 0..<3, using: &random)
        let next = lastChange + 1
        switch Int.random(in: 0..<100, using: &random) {
        case ..<15: try receive(place)
        case ..<33: try synchronize(place)
        case ..<38: try devices[place].receive(good[place])
        case ..<50: try change(place, "read") { _, _ in }
        case ..<60:
            // All devices use the same item keys. A merge then meets two values, and can open only one of
            // them.
            let (key, value) = ("own \(Int.random(in: 0..<3, using: &random))", "fake own \(next)")
            try change(place, "store \(key)") { vault, version in
                if try vault.storeOwnIfPossible(value, for: TokenKey(key)) {
                    version.ownChange = (key, value)
                }
            }
        case ..<61:
            let key = "own \(Int.random(in: 0..<3, using: &random))"
            try change(place, "delete \(key)") { vault, version in
                guard try vault.listedKeys().contains(key), try vault.delete(key) else { return }
                version.ownChange = (key, nil)
            }
        case ..<76:
            let (key, value) = ("key \(Int.random(in: 0..<5, using: &random))", "fake \(lastChange)")
            try change(place, "store \(key)") { vault, version in
                try vault.store(value, for: key)
                version.values[key] = value
                version.origins[key] = next
            }
        case ..<77:
            try change(place, "devices") { vault, version in
                let devices = try vault.devices()
                if let own = devices.first(where: \.isThisDevice) {
                    guard devices.count > 1 else { return }
                    _ = try vault.removeDevice(own.id)
                    version.removals[next] = version.allChanges
                } else {
                    // A restored file lacks its device. Without this removal, such devices would fill the
                    // keybag.
                    if devices.count > 3 {
                        _ = try vault.removeDevice(devices[0].id)
                        version.removals[next] = version.allChanges
                    }
                    _ = try vault.enrolDevice()
                }
            }
        case ..<83:
            let key = "key \(Int.random(in: 0..<5, using: &random))"
            try change(place, "delete \(key)") { vault, version in
                guard try vault.delete(key) else { return }
                version.values[key] = nil
                version.origins[key] = next
            }
        case ..<87: try change(place, "compact") { vault, _ in _ = try vault.compact() }
        case ..<89:
            try change(place, "slots") { vault, _ in
                let slot = try vault.addSlot(SimulatedVault.key("second"), scope: .all)
                try vault.removeSlot(slot.id)
            }
        case ..<90:
            try change(place, "rotate") { vault, version in
                _ = try vault.rotateKeys(keeping: [TestDevice.key])
                version.isRotated = true
            }
        case ..<99: try merge(place)
        default:
            // Rare, because afterwards the test does not know this device's own items exactly.
            if Int.random(in: 0..<10, using: &random) == 0 { try adopt(place) }
        }
    }

    /// Returns the values that all devices can read. Checks the own items of `place`: the device has each value that it
    /// stored last, under that key or one of a conflict.
    private mutating func values(
        _ vault: BlockingFileVault, _ place: Int, _ version: Version
    ) throws -> [String: String] {
        var values: [String: String] = [:]
        var ownItems: [String: String] = [:]
        for key in try vault.listedKeys() {
            if key.hasPrefix("own") {
                ownItems[key] = try vault.value(of: key)
            } else {
                values[key] = try vault.value(of: key)
            }
        }
        // The removal of a device also removes its items from the file where the removal happened.
        for (removal, changes) in version.removals where !knownRemovals[place].contains(removal) {
            own[place] = own[place].filter { $0.value.change.map { !changes.contains($0) } ?? false }
        }
        for (key, stored) in own[place] {
            guard ownItems.contains(where: { $0.key.hasPrefix(key) && $0.value == stored.value }) else {
                throw Complaint(description: "\(key) of device \(place) is not \(stored): \(ownItems)")
            }
            ownValues += 1
        }
        return values
    }

    private mutating func keep(_ place: Int) {
        files.append(devices[place].file)
        // Removes files at random to make room.
        if files.count > 60 { files.remove(at: Int.random(in: 0..<files.count, using: &random)) }
    }

    /// The adversary.
    private mutating func receive(_ place: Int) throws {
        guard let file = files.randomElement(using: &random) else { return }
        log.append("put \(versions[file]?.changes.sorted().suffix(3) ?? []) at \(place)")
        try devices[place].receive(file)
    }

    /// A folder that works as it should.
    private mutating func synchronize(_ place: Int) throws {
        let other = (place + 1) % 3
        log.append("\(other) has the file of \(place)")
        try devices[other].receive(devices[place].file)
    }

    private func version(at place: Int) throws -> Version {
        guard let version = versions[devices[place].file] else {
            throw Complaint(description: "a file that was changed by opening it")
        }
        return version
    }

    /// Opens the vault, looks at all of it, and changes it.
    private mutating func change(
        _ place: Int, _ what: String, _ body: (BlockingFileVault, inout Version) throws -> Void
    ) throws {
        var version = try version(at: place)
        if forgetsAnchors { devices[place].forgetAnchor() }
        let hasAll = seen[place].isSubset(of: version.changes)
        // Once no value is left, the file counts commits in part as whole. This test does not know when that
        // happens.
        let hasInPart = seen[place].isSubset(of: version.allChanges)
        log.append("\(what) at \(place): \(hasAll ? "has all" : "lacks something")")
        let vault: BlockingFileVault
        let untouched = devices[place].file
        do {
            vault = try devices[place].opened()
        } catch let error as TokenStorageError where error.code == .rolledBack || error.code == .forked {
            guard !hasAll else { throw Complaint(description: "refused what has all: \(error)") }
            refused += 1
            if Bool.random(using: &random) { try devices[place].receive(good[place]) }
            return
        }
        defer { vault.close() }
        guard hasInPart else { throw Complaint(description: "opened what lacks what was seen") }
        let values = try values(vault, place, version)
        guard values == version.values else { throw Complaint(description: "\(values)") }
        opened += 1
        let before = devices[place].file
        guard before == untouched || version.isRotated else {
            throw Complaint(description: "opening it changed it")
        }
        try body(vault, &version)
        if let (key, value) = version.ownChange { own[place][key] = value.map { ($0, lastChange + 1) } }
        version.ownChange = nil
        if devices[place].file != untouched {
            lastChange += 1
            version.changes.insert(lastChange)
            versions[devices[place].file] = version
            keep(place)
        }
        seen[place].formUnion(version.changes)
        good[place] = devices[place].file
        guard try self.values(vault, place, version) == version.values else {
            throw Complaint(description: "after it")
        }
        knownRemovals[place] = Set(version.removals.keys)
    }

    /// Any file that ever was is merged into the one at the path. Nothing that one of the two has is lost, unless the other one
    /// replaced or deleted it knowingly.
    private mutating func merge(_ place: Int) throws {
        guard let file = files.randomElement(using: &random), let theirs = versions[file] else { return }
        let ours = try version(at: place)
        let all = ours.allChanges.union(theirs.allChanges)
        let hasAll = seen[place].isSubset(of: ours.changes.union(theirs.changes))
        log.append(
            "merge \(theirs.changes.sorted().suffix(3)) at \(place): \(hasAll ? "has all" : "lacks something")"
        )
        let report: MergeReport
        do {
            report = try devices[place].merge(file)
        } catch let error as TokenStorageError
            where error.code == .rolledBack || error.code == .forked || error.code == .invalidArgument
        {
            // The first file after an adoption shares only its past with the earlier files.
            guard !hasAll || error.code == .invalidArgument else {
                throw Complaint(description: "merge refused what has all: \(error)")
            }
            refused += 1
            return
        } catch let error as TokenStorageError where error.code == .conflict && theirs.isRotated {
            // The copy has newer keys than the file at the path.
            refused += 1
            return
        }
        guard seen[place].isSubset(of: all) else {
            throw Complaint(description: "merged what lacks what was seen")
        }
        merged += 1
        if report.isUpToDate {
            guard theirs.changes.isSubset(of: ours.allChanges) || report.remaining > 0 else {
                throw Complaint(description: "up to date, without changes of the copy")
            }
            // The merge has read the file at the path.
            seen[place].formUnion(ours.changes)
            good[place] = devices[place].file
            return
        }
        left += report.remaining
        var result = Version(changes: ours.changes, changesInPart: all)
        if report.remaining == 0 { result.changes.formUnion(theirs.changes) }
        let vault = try devices[place].opened()
        defer { vault.close() }
        result.removals = ours.removals.merging(theirs.removals) { mine, _ in mine }
        if hasAdopted[place] || report.notes.contains(where: { $0.contains("device enrol") }) {
            // After an adoption, the copy may have newer values. After a key rotation, this device's items
            // stay in the copy.
            own[place] = try vault.ownItems().mapValues { ($0, nil) }
        }
        let values = try values(vault, place, result)
        knownRemovals[place] = Set(result.removals.keys)
        result.values = values
        result.isRotated = ours.isRotated || theirs.isRotated
        lastChange += 1
        // A file that becomes the vault unchanged changes nothing for its descendants.
        if devices[place].file != file { result.changes.insert(lastChange) }
        let dropped = droppedCopies(ours, theirs)
        for key in Set(ours.origins.keys).union(theirs.origins.keys).union(values.keys) {
            var (value, origin) = expected(key, ours, theirs, values)
            if dropped.ours.contains(key) {
                var rest = ours
                rest.values[key] = nil
                (value, _) = expected(key, rest, theirs, values)
                origin = lastChange
            }
            if dropped.theirs.contains(key) {
                // Each file may have another value under that key.
                value = dropped.ours.contains(key) ? nil : ours.values[key]
                origin = value == nil ? lastChange : ours.origins[key] ?? 0
            }
            guard values[key] == value else {
                let name = Self.original(of: key)
                let sides = [("ours", ours.values), ("theirs", theirs.values), ("now", values)].map {
                    side, all in
                    "\(side): \(all.filter { Self.original(of: $0.key) == name }.sorted { $0.key < $1.key })"
                }
                throw Complaint(
                    description: "\(key) is \(values[key] ?? "absent") and not \(value ?? "absent"); "
                        + sides.joined(separator: "; "))
            }
            result.origins[key] = origin
        }
        for conflict in report.conflicts where !conflict.key.name.hasPrefix("own") {
            let key = conflict.key.name
            let inBoth = Array(ours.values) + Array(theirs.values)
            let known = Set(
                inBoth.filter { Self.original(of: $0.key) == Self.original(of: key) }.map(\.value))
            guard let kept = values[conflict.keptAs.name], known.contains(kept) else {
                throw Complaint(description: "the conflict of \(key) has another value")
            }
        }
        versions[devices[place].file] = result
        // Another device owns the items that the merge left in the copy.
        seen[place] = result.changes
        good[place] = devices[place].file
        keep(place)
    }

    /// Returns what a merge makes of a key, and the change that it is from. A value gives way where the other file has seen
    /// it; one that the other file has not seen stays.
    private func expected(
        _ key: String, _ ours: Version, _ theirs: Version, _ values: [String: String]
    ) -> (String?, Int) {
        let (our, their) = (ours.origins[key] ?? 0, theirs.origins[key] ?? 0)
        let isOursKnown = theirs.allChanges.contains(our)
        let isTheirsKnown = ours.allChanges.contains(their)
        switch (ours.values[key], theirs.values[key]) {
        // The moved value of a conflict, under a new key.
        case (nil, nil): return our == 0 && their == 0 ? (values[key], lastChange) : (nil, max(our, their))
        case (let mine?, nil): return isOursKnown ? (nil, their) : (mine, our)
        case (nil, let yours?): return isTheirsKnown ? (nil, our) : (yours, their)
        case (let mine?, let yours?):
            if our == their { return (mine, our) }
            if !isOursKnown || isTheirsKnown && !isSettled(key, ours, theirs) { return (mine, our) }
            return (yours, their)
        }
    }

    /// Returns whether the other file's value counts where each file has seen both values.
    private func isSettled(_ key: String, _ ours: Version, _ theirs: Version) -> Bool {
        if theirs.allChanges.isSubset(of: ours.allChanges) { return false }
        return ours.allChanges.isSubset(of: theirs.allChanges)
            || !copies(of: key, theirs.values[key], in: ours).isEmpty
                && copies(of: key, ours.values[key], in: theirs).isEmpty
    }

    /// The key without the ends that merges made.
    private static func original(of key: String) -> String {
        key.firstRange(of: " (conflict ").map { String(key[..<$0.lowerBound]) } ?? key
    }

    /// The keys under which earlier merges kept a value of `key`, or of the key that a conflict had there.
    private func copies(of key: String, _ value: String?, in version: Version) -> [String] {
        let name = Self.original(of: key)
        return version.values.filter { $0.key.hasPrefix(name + " (conflict ") && $0.value == value }.map(
            \.key)
    }

    /// Returns the keys of kept values that a merge drops, of either file: the value is under its own key.
    private func droppedCopies(
        _ ours: Version, _ theirs: Version
    ) -> (ours: Set<String>, theirs: Set<String>) {
        var dropped: (ours: Set<String>, theirs: Set<String>) = ([], [])
        for (key, mine) in ours.values {
            let (our, their) = (ours.origins[key] ?? 0, theirs.origins[key] ?? 0)
            guard let yours = theirs.values[key], our != their, theirs.allChanges.contains(our),
                ours.allChanges.contains(their), !ours.allChanges.isSubset(of: theirs.allChanges),
                !theirs.allChanges.isSubset(of: ours.allChanges)
            else { continue }
            dropped.theirs.formUnion(copies(of: key, mine, in: theirs))
            if isSettled(key, ours, theirs) { dropped.ours.formUnion(copies(of: key, yours, in: ours)) }
        }
        return dropped
    }

    /// A person decides that the file at the path is the vault.
    private mutating func adopt(_ place: Int) throws {
        var version = try version(at: place)
        log.append("adopt at \(place)")
        try devices[place].adopt()
        hasAdopted[place] = true
        knownRemovals[place] = Set(version.removals.keys)
        own[place] = try devices[place].use { try $0.ownItems().mapValues { ($0, nil) } }
        lastChange += 1
        version.changes.insert(lastChange)
        versions[devices[place].file] = version
        seen[place] = version.changes
        good[place] = devices[place].file
        keep(place)
    }
}
