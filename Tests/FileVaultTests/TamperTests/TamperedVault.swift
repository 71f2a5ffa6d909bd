import SystemPackage
import TokenVault
import TokenVaultPlatform

/// A small vault, known to the last byte, for being tampered with.
struct TamperedVault: Sendable {
    /// The disk as it was left.
    var contents: DiskContents
    /// What is in the vault.
    var facts: Facts
    /// The disk and what was in the vault after each commit before.
    var older: [(contents: DiskContents, facts: Facts)] = []

    /// The vault file's bytes.
    var file: [UInt8] {
        get { contents.directories[0][SimulatedVault.name] ?? [] }
        set { contents.directories[0][SimulatedVault.name] = newValue }
    }

    /// Where each frame lies, by the documented framing: from byte 16,896 on, each begins with "TVF1" and its
    /// length in four bytes, little-endian.
    var frames: [Range<Int>] {
        let bytes = file
        var frames: [Range<Int>] = []
        var offset = 16_896
        while offset + 8 <= bytes.count, bytes.bytes(in: offset..<offset + 4) == Array("TVF1".utf8) {
            let length = (0..<4).reduce(0) { $0 | Int(bytes[offset + 4 + $1]) << ($1 * 8) }
            frames.append(offset..<offset + length)
            offset += length
        }
        return frames
    }

    /// The end of the last frame.
    var end: Int { frames.last?.upperBound ?? 0 }

    /// The same without its anchor.
    func withoutAnchor() -> TamperedVault {
        var copy = self
        copy.contents.directories[1] = contents.directories[1].filter { !$0.key.hasSuffix(".anchor") }
        return copy
    }

    /// A vault with a few small items: one replaced, two stored together.
    /// With a small `tailBound` there is an index block in the middle of the log.
    static func make(tailBound: Int? = nil) throws -> TamperedVault {
        let disk = SimulatedDisk(try SimulatedVault.fresh())
        let vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk), tailBound: tailBound)
        let storage = vault.storage(service: SimulatedVault.service)
        var result = TamperedVault(contents: disk.contents, facts: [:])
        func note() throws {
            result.older.append((result.contents, result.facts))
            result.contents = disk.contents
            result.facts = try SimulatedVault.facts(of: vault)
        }
        try storage.store(token: "the first value", for: "a")
        try note()
        try storage.store(token: "another value", for: "b")
        try note()
        try storage.store(token: "a newer value", for: "a")
        try note()
        try storage.commit([
            .store(Secret(utf8: "together"), for: "c"), .store(Secret(utf8: "with this"), for: "d"),
        ])
        try note()
        vault.close()
        return result
    }

    /// The same with fewer zeros behind the log, which are read again and again: a vault may end anywhere in
    /// them.
    func withFewZeros() -> TamperedVault {
        var copy = self
        copy.file = file.bytes(in: 0..<end + 2_048)
        return copy
    }

    /// What came of looking at a tampered vault.
    enum Verdict: Equatable, CustomStringConvertible {
        /// All is there, and nothing was said.
        case unnoticed
        /// All is there, and what was odd was said.
        case reported
        /// The vault, or some item of it, was refused.
        case refused(TokenStorageError.Code)
        /// What was stored is said to be absent, or to be what it was before; exactly these facts are found.
        case older(Facts)
        /// Something that was never there was found.
        case invented(Facts)

        var description: String {
            switch self {
            case .unnoticed: "unnoticed"
            case .reported: "reported"
            case .refused(let code): "refused: \(code.rawValue)"
            case .older(let facts): "older: \(facts.keys.sorted())"
            case .invented(let facts): "invented: \(facts)"
            }
        }
    }

    /// Opens the disk that holds `contents` as a user would, and reads everything.
    func judge(_ contents: DiskContents) -> Verdict {
        do {
            let disk = SimulatedDisk(contents)
            let vault = try SimulatedVault.open(at: SimulatedVault.location(on: disk))
            defer { vault.close() }
            let storage = vault.storage(service: SimulatedVault.service)
            // A call that names a hidden item must fail with the reason.
            if try storage.list(.all).hidden > 0 {
                for key in facts.keys { _ = try storage.retrieve(for: TokenKey(key)) }
            }
            let found = try SimulatedVault.facts(of: vault)
            if found != facts {
                return older.contains { $0.facts == found } ? .older(found) : .invented(found)
            }
            // Single reads must give the same result as the list.
            for (key, fact) in facts where try storage.retrieve(for: TokenKey(key)) != fact.value {
                return .older([:])
            }
            if try !vault.status().notes.isEmpty { return .reported }
            let report = try vault.verify()
            return report.isClean && report.notes.isEmpty ? .unnoticed : .reported
        } catch let error as TokenStorageError {
            return .refused(error.code)
        } catch {
            return .invented(["\(error)": Fact(value: "", generation: 0)])
        }
    }

    /// Judges the vault with its file changed by `change`.
    func judge(file change: (inout [UInt8]) -> Void) -> Verdict {
        var copy = self
        change(&copy.file)
        return judge(copy.contents)
    }

    /// Judges many changes, on both cores; returns those whose verdict is not accepted, the first few in full.
    func unaccepted<Change: Sendable>(
        _ changes: [Change], apply: @escaping @Sendable (Change, inout DiskContents) -> Void,
        accept: @escaping @Sendable (Change, Verdict) -> Bool
    ) async -> [String] {
        let found = Monitor([String]())
        let next = Monitor(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    while true {
                        let batch = next.withLock { next in
                            defer { next += 16 }
                            return min(next, changes.count)..<min(next + 16, changes.count)
                        }
                        if batch.isEmpty { return }
                        for change in changes[batch] {
                            var contents = self.contents
                            apply(change, &contents)
                            let verdict = judge(contents)
                            if !accept(change, verdict) {
                                found.withLock { $0.append("\(change): \(verdict)") }
                            }
                        }
                    }
                }
            }
        }
        let all = found.withLock { $0 }
        return all.count > 12 ? Array(all.prefix(12)) + ["and \(all.count - 12) more"] : all
    }
}
