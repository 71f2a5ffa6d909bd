/// The choices tried at one crash point: the corners, each change alone and all but it, every order of
/// time, torn writes, and random mixtures.
struct CrashChoices {
    private let image: CrashImage
    private let samples: Int
    private var random: SeededGenerator
    private var choices: [CrashChoice] = []
    /// Files some choice gives a name, which have changes that can still go either way.
    private let undecided: [Int]

    /// The number of a file's latest changes that are tried one by one. A file that is never synced, such as
    /// an anchor, has all its history open.
    private static let closeLook = 4

    static func all(of image: CrashImage, seed: UInt64, samples: Int) -> [CrashChoice] {
        var choices = CrashChoices(image: image, seed: seed, samples: samples)
        choices.collect()
        return choices.choices
    }

    private init(image: CrashImage, seed: UInt64, samples: Int) {
        self.image = image
        self.samples = samples
        random = SeededGenerator(seed: seed)
        undecided = image.reachable.filter { image.files[$0]?.changes.isEmpty == false }
    }

    private var noEntries: [Int] { image.directories.map { _ in 0 } }
    private var allEntries: [Int] { image.directories.map { $0.changes.count } }

    /// How many of the choices, the first, are corners: nothing or all, of files and of names.
    static let corners = 4

    private mutating func collect() {
        for entries in [noEntries, allEntries] {
            add([:], others: .nothing, entries: entries)
            add([:], others: .everything, entries: entries)
        }
        for entries in entryCombinations() {
            add([:], others: .nothing, entries: entries)
            add([:], others: .everything, entries: entries)
        }
        for inode in undecided {
            let file = image.files[inode] ?? CrashImage.File()
            add([inode: .everything], others: .nothing, entries: nil)
            add([inode: .nothing], others: .everything, entries: nil)
            add([inode: CrashChoice.File(size: .max, data: 0)], others: .everything, entries: nil)
            add([inode: CrashChoice.File(size: 0, data: .max)], others: .everything, entries: nil)
            if file.changes.contains(where: { $0.fate == .lost }) {
                let kept = CrashChoice.File(size: .max, data: .max, keepsLost: true)
                add([inode: kept], others: .everything, entries: nil)
            }
            for change in file.changes.filter({ $0.fate == .open }).suffix(Self.closeLook) {
                collect(change, of: inode)
            }
        }
        collectMoments()
        if !undecided.isEmpty || allEntries.contains(where: { $0 > 0 }) {
            for _ in 0..<samples { addRandom() }
        }
    }

    /// One change alone, all but it, and its sectors torn.
    private mutating func collect(_ change: CrashImage.FileChange, of inode: Int) {
        let position = change.position
        let sectors = Array(change.sectors)
        func only(_ kept: some Sequence<Int>, size: Int) -> CrashChoice.File {
            var file = CrashChoice.File(size: size, data: 0)
            for sector in kept { file.sectors[sector] = position + 1 }
            return file
        }
        func without(_ dropped: some Sequence<Int>, size: Int) -> CrashChoice.File {
            var file = CrashChoice.File(size: size, data: .max)
            for sector in dropped { file.sectors[sector] = position }
            return file
        }
        var files = [
            only(sectors, size: 0), only(sectors, size: position + 1), only(sectors, size: .max),
            without(sectors, size: .max), without(sectors, size: position),
            CrashChoice.File(size: position, data: position),
            CrashChoice.File(size: position + 1, data: position + 1),
        ]
        if sectors.count > 1 {
            var looked = Set(sectors.prefix(3) + sectors.suffix(3))
            for _ in 0..<4 { if let sector = sectors.randomElement(using: &random) { looked.insert(sector) } }
            for sector in looked.sorted() {
                files.append(only([sector], size: .max))
                files.append(without([sector], size: .max))
                files.append(only(sectors.prefix { $0 <= sector }, size: .max))
                files.append(without(sectors.drop { $0 < sector }, size: position + 1))
            }
            for _ in 0..<3 {
                let kept = sectors.filter { _ in Bool.random(using: &random) }
                files.append(without(kept, size: .max))
            }
        }
        for file in files {
            add([inode: file], others: .everything, entries: nil)
        }
        add([inode: only(sectors, size: .max)], others: .nothing, entries: nil)
    }

    /// The whole disk as it was at each moment since the oldest open change.
    private mutating func collectMoments() {
        var moments: Set<Int> = []
        for inode in undecided {
            for change in image.files[inode]?.changes.suffix(Self.closeLook) ?? [] {
                moments.insert(change.position)
            }
        }
        for directory in image.directories {
            for change in directory.changes { moments.insert(change.position) }
        }
        for moment in moments.sorted() {
            add(
                [:], others: CrashChoice.File(size: moment, data: moment),
                entries: image.directories.map { directory in
                    directory.changes.filter { $0.position < moment }.count
                })
        }
    }

    private mutating func addRandom() {
        var files: [Int: CrashChoice.File] = [:]
        for inode in undecided {
            let changes = image.files[inode]?.changes ?? []
            var positions = changes.map(\.position)
            positions.append(.max)
            func position() -> Int { positions.randomElement(using: &random) ?? 0 }
            var file = CrashChoice.File(
                size: position(), data: position(), keepsLost: Bool.random(using: &random))
            for change in changes.suffix(8) {
                for sector in change.sectors.prefix(256) where Bool.random(using: &random) {
                    file.sectors[sector] = position()
                }
            }
            files[inode] = file
        }
        let entries = image.directories.map { Int.random(in: 0...$0.changes.count, using: &random) }
        choices.append(CrashChoice(files: files, otherFiles: .nothing, entries: entries))
    }

    /// Adds a choice; without `entries`, once with none and once with all of the directories' changes.
    private mutating func add(_ files: [Int: CrashChoice.File], others: CrashChoice.File, entries: [Int]?) {
        let combinations = entries.map { [$0] } ?? Array(Set([noEntries, allEntries]))
        for entries in combinations.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            choices.append(CrashChoice(files: files, otherFiles: others, entries: entries))
        }
    }

    /// Every number of kept changes for each directory, in every combination.
    private func entryCombinations() -> [[Int]] {
        image.directories.reduce([[]]) { combinations, directory in
            combinations.flatMap { combination in
                (0...directory.changes.count).map { combination + [$0] }
            }
        }
    }
}
