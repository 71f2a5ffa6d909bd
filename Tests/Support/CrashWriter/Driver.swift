import Glibc
import SystemPackage
import TokenVault

/// Starts the writers, kills them, and compares the vault with what they said.
struct Driver {
    private struct Held: Equatable {
        var value: String
        /// The generation; `nil` for a step whose end no writer reported.
        var generation: UInt64?
    }

    private let seed: UInt64
    private var generator: SeededGenerator
    private var model: [String: Held] = [:]
    private var next = [1, 1]
    private var acknowledged = 0
    private var cut = 0
    private var happened = 0

    init(seed: UInt64) {
        self.seed = seed
        generator = SeededGenerator(seed: seed)
    }

    /// Runs `rounds` rounds in a directory of its own; a line about them.
    mutating func run(_ rounds: Int) throws -> String {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/var/tmp"
        var template = Array("\(parent)/crash-writer.XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { throw Failure("mkdtemp in \(parent): \(errno)") }
        let directory = String(cString: made)
        let (path, state) = ("\(directory)/test.vault", "\(directory)/state")
        try BlockingFileVault.create(
            at: FilePath(path), unlockMethod: testKey, configuration: configuration(state: state)
        ).close()
        // This reader stays open, and must see the same as a reader that opens the vault later.
        let reader = try BlockingFileVault.open(
            at: FilePath(path), configuration: configuration(state: state))
        try reader.unlock(with: testKey)
        for round in 1...max(1, rounds) {
            do {
                try runOne(path: path, state: state, reader: reader)
            } catch {
                throw Failure("round \(round), seed \(seed), vault kept in \(directory): \(error)")
            }
        }
        reader.close()
        removeAll(directory)
        return
            "\(rounds) rounds (seed \(seed)): two writers killed in each; \(acknowledged) steps acknowledged, "
            + "\(cut) cut short, \(happened) of them after they had written; nothing lost"
    }

    private mutating func runOne(path: String, state: String, reader: BlockingFileVault) throws {
        let victims = try next.indices.map { writer in
            try Victim(["write", path, state, "\(writer)", "\(next[writer])", "\(seed)"])
        }
        let lines = Int.random(in: 1...24, using: &generator)
        victims[Int.random(in: 0...1, using: &generator)].wait(forLines: lines)
        // The kills must not all come right behind a line: a step takes some hundred microseconds.
        usleep(UInt32.random(in: 0...1_500, using: &generator))
        for victim in victims.shuffled(using: &generator) { victim.kill() }

        var underWay: [Step] = []
        for (writer, victim) in victims.enumerated() {
            for line in try victim.finish() {
                let words = line.split(separator: " ")
                guard words.count >= 2, let number = Int(words[1]) else { throw Failure("a line: \(line)") }
                let step = Step(writer: writer, number: number)
                if words[0] == "begin" {
                    underWay.append(step)
                    next[writer] = number + 1
                } else {
                    underWay.removeLast()
                    acknowledged += 1
                    apply(step, generation: words.count > 2 ? UInt64(words[2]) : nil)
                }
            }
        }
        cut += underWay.count
        let fresh = try BlockingFileVault.open(at: FilePath(path), configuration: configuration(state: state))
        defer { fresh.close() }
        try fresh.unlock(with: testKey)
        let found = try contents(of: fresh)
        guard try contents(of: reader) == found else { throw Failure("two readers see two things") }
        try settle(underWay, found: found)
        let report = try fresh.verify()
        guard report.isClean else { throw Failure("verify: \(report.problems)") }
    }

    private func contents(of vault: BlockingFileVault) throws -> [String: Held] {
        let storage = vault.storage(service: testService)
        var found: [String: Held] = [:]
        for metadata in try storage.list(.all).items {
            guard let item = try storage.item(for: metadata.key), let text = item.secret.unprotectedText()
            else {
                throw Failure("\(metadata.key) is listed and not there")
            }
            found[metadata.key.name] = Held(value: text, generation: item.metadata.generation.rawValue)
        }
        return found
    }

    private mutating func apply(_ step: Step, generation: UInt64?) {
        for (key, value) in step.changes {
            model[key] = value.map { Held(value: $0, generation: generation) }
        }
    }

    /// Takes in the steps that were cut short and happened all the same; throws unless all is then as found.
    private mutating func settle(_ underWay: [Step], found: [String: Held]) throws {
        for step in underWay where !step.changes.isEmpty {
            let isThere = step.changes.allSatisfy { key, value in found[key]?.value == value }
            let isChange = step.changes.contains { key, value in model[key]?.value != value }
            guard isThere, isChange else { continue }
            happened += 1
            for (key, value) in step.changes {
                model[key] = value.map { Held(value: $0, generation: found[key]?.generation) }
            }
        }
        for key in Set(model.keys).union(found.keys).sorted() where model[key] != found[key] {
            func text(_ held: Held?) -> String {
                held.map { "\($0.value.prefix(24)) (\($0.generation.map { "generation \($0)" } ?? "?"))" }
                    ?? "absent"
            }
            throw Failure("\(key): found \(text(found[key])), told \(text(model[key]))")
        }
    }

    private func removeAll(_ directory: String) {
        for name in ["\(directory)/state", directory] {
            guard let stream = opendir(name) else { continue }
            defer { closedir(stream) }
            while let entry = readdir(stream) {
                let file = withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if file != ".", file != ".." { unlink("\(name)/\(file)") }
            }
            rmdir(name)
        }
    }
}
