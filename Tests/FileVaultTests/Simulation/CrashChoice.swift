/// Which of the changes under way reached the disk.
struct CrashChoice: Sendable {
    /// The same for one file. A position is a place in the trace; what comes before it is kept.
    struct File: Sendable, Equatable {
        /// Sizes from changes before this position are kept.
        var size: Int
        /// A sector holds what it held at this position …
        var data: Int
        /// … or at its own.
        var sectors: [Int: Int] = [:]
        /// Whether a change that a failed sync dropped had reached the disk before.
        var keepsLost = false

        static let nothing = File(size: 0, data: 0)
        static let everything = File(size: .max, data: .max)

        func keepsSize(_ change: CrashImage.FileChange) -> Bool {
            switch change.fate {
            case .durable: true
            case .lost: keepsLost
            case .open: change.position < size
            }
        }

        func keeps(_ change: CrashImage.FileChange, sector: Int) -> Bool {
            switch change.fate {
            case .durable: true
            case .lost: keepsLost
            case .open: change.position < sectors[sector] ?? data
            }
        }

        /// The parts of a write that are on the disk, as ranges within its bytes.
        func keptRanges(of change: CrashImage.FileChange, at offset: Int, count: Int) -> [Range<Int>] {
            guard count > 0 else { return [] }
            if change.fate != .open || sectors.isEmpty {
                return keeps(change, sector: -1) ? [0..<count] : []
            }
            var ranges: [Range<Int>] = []
            for sector in change.sectors where keeps(change, sector: sector) {
                let start = max(0, sector * CrashImage.sectorSize - offset)
                let end = min(count, (sector + 1) * CrashImage.sectorSize - offset)
                if let last = ranges.last, last.upperBound == start {
                    ranges[ranges.count - 1] = last.lowerBound..<end
                } else {
                    ranges.append(start..<end)
                }
            }
            return ranges
        }
    }

    /// By inode.
    var files: [Int: File] = [:]
    /// For inodes that are not named.
    var otherFiles: File
    /// For each directory, how many of its changes reached the disk.
    var entries: [Int]
}
