/// Finds the name that a user may have mistyped.
enum SimilarName {
    /// Returns the one of `names` that is most similar to `word`; `nil` when none is similar.
    ///
    /// At most two letters, and fewer than half of the name, may be wrong, missing, extra or swapped.
    static func nearest(to word: String, among names: [String]) -> String? {
        guard word.utf8.count <= 32 else { return nil }
        let distances = names.map { (name: $0, distance: distance(Array(word.utf8), Array($0.utf8))) }
        let best = distances.min { $0.distance < $1.distance }
        guard let best, best.distance <= 2, best.distance * 2 < best.name.utf8.count else { return nil }
        return best.name
    }

    /// Returns the number of letters to change, remove, insert or swap with the next one (Damerau,
    /// Levenshtein).
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var rows = [Array(0...right.count)]
        for (row, letter) in left.enumerated() {
            var next = [row + 1]
            for (column, other) in right.enumerated() {
                var least = min(
                    rows[row][column] + (letter == other ? 0 : 1), rows[row][column + 1] + 1, next[column] + 1
                )
                if row > 0, column > 0, letter == right[column - 1], left[row - 1] == other {
                    least = min(least, rows[row - 1][column - 1] + 1)
                }
                next.append(least)
            }
            rows.append(next)
        }
        return rows[left.count][right.count]
    }
}
