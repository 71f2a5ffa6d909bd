import SystemPackage
import TokenVaultCrypto
import TokenVaultPlatform

/// The smallest log that keeps its promises. The crash rig is tried on it, to separate a fault of the rig
/// from a fault of the vault. Records are length, checksum, sequence, `key=value`. An anchor in the second
/// directory holds the last sequence.
final class ToyLog {
    struct Broken: Error, CustomStringConvertible {
        var description: String
    }

    private let directory: any DiskDirectory
    private let state: any DiskDirectory
    private var file: any DiskFile
    private var anchor: any DiskFile
    private var facts: Facts = [:]
    private var end = 0
    private var sequence: UInt64 = 0

    static func create(_ directory: any DiskDirectory, _ state: any DiskDirectory) throws {
        let anchor = try state.open("anchor", .create)
        try anchor.write([UInt8](repeating: 0, count: 8), at: 0)
        try anchor.synchronize()
        try state.synchronize()
        let file = try directory.open("new", .create)
        try file.synchronize()
        try directory.rename("new", to: "log", replacing: false)
        try directory.synchronize()
    }

    init(_ directory: any DiskDirectory, _ state: any DiskDirectory) throws {
        self.directory = directory
        self.state = state
        anchor = try state.open("anchor", .readWrite)
        file = try directory.open("log", .readWrite)
        let anchored = Self.number(try anchor.read(8, at: 0))
        try readOn()
        if sequence < anchored { throw Broken(description: "rolled back: \(sequence) below \(anchored)") }
    }

    /// Every fact, after a look at what others wrote.
    func read() throws -> Facts {
        try reopenWhenReplaced()
        try readOn()
        return facts
    }

    func store(_ key: String, _ value: String?) throws -> UInt64 {
        try lock()
        defer { file.unlock() }
        try readOn()
        let record = Self.record(sequence + 1, "\(key)=\(value ?? "")")
        try file.write(record, at: end)
        do {
            try file.synchronize()
        } catch {
            // Readers may see a record that is not on the disk. Overwrites the record before anything else
            // can rely on it.
            try file.write([UInt8](repeating: 0, count: record.count), at: end)
            try file.synchronize()
            throw error
        }
        try readOn()
        try anchor.write(Self.bytes(sequence), at: 0)
        return sequence
    }

    /// Writes what is live into a new file and puts it in place of the old one.
    func compact() throws {
        try lock()
        defer { file.unlock() }
        try readOn()
        // Removes the remainder of a compaction that crashed.
        if try directory.attributes(of: "new") != nil { try directory.remove("new") }
        let new = try directory.open("new", .create)
        var offset = 0
        for (key, fact) in facts.sorted(by: { $0.value.generation < $1.value.generation }) {
            let record = Self.record(fact.generation, "\(key)=\(fact.value)")
            try new.write(record, at: offset)
            offset += record.count
        }
        let mark = Self.record(sequence, "")
        try new.write(mark, at: offset)
        try new.synchronize()
        guard try new.tryLock(.exclusive) else { throw Broken(description: "new file locked") }
        try directory.rename("new", to: "log", replacing: true)
        try directory.synchronize()
        file = new
        end = offset + mark.count
    }

    private func lock() throws {
        while true {
            guard try file.tryLock(.exclusive) else { throw Broken(description: "locked") }
            if try !reopenWhenReplaced() { return }
        }
    }

    @discardableResult
    private func reopenWhenReplaced() throws -> Bool {
        if try directory.attributes(of: "log")?.identity == file.attributes().identity { return false }
        file = try directory.open("log", .readWrite)
        (facts, end, sequence) = ([:], 0, 0)
        return true
    }

    /// Follows the log to its last whole record.
    private func readOn() throws {
        while true {
            let header = try file.read(12, at: end)
            guard header.count == 12 else { return }
            let length = Int(Self.number(Array(header[0..<4])))
            let body = try file.read(length, at: end + 12)
            guard length >= 8, body.count == length,
                Hash.digest(body, length: 16).prefix(8).elementsEqual(header[4..<12])
            else { return }
            sequence = Self.number(Array(body[0..<8]))
            let parts = String(decoding: body[8...], as: UTF8.self).split(separator: "=", maxSplits: 1)
            if let key = parts.first {
                let value = parts.count > 1 ? String(parts[1]) : nil
                facts[String(key)] = value.map { Fact(value: $0, generation: sequence) }
            }
            end += 12 + length
        }
    }

    private static func record(_ sequence: UInt64, _ text: String) -> [UInt8] {
        let body = bytes(sequence) + Array(text.utf8)
        return bytes(UInt64(body.count)).prefix(4) + Hash.digest(body, length: 16).prefix(8) + body
    }

    private static func bytes(_ number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }

    private static func number(_ bytes: [UInt8]) -> UInt64 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// What must be true of a toy log after a crash.
struct ToySubject: CrashSubject {
    func inspect(_ disk: SimulatedDisk, expecting expectations: [Expectation]) -> [String] {
        let (directory, state) = (disk.directory(0), disk.directory(1))
        do {
            guard try directory.attributes(of: "log") != nil else {
                return expectations.compactMap { $0.complaint(about: [:]) }
            }
            let log = try ToyLog(directory, state)
            let found = try log.read()
            let complaints = expectations.compactMap { $0.complaint(about: found) }
            if !complaints.isEmpty { return complaints }
            let generation = try log.store("after", "crash")
            let again = try ToyLog(directory, state).read()
            var expected = found
            expected["after"] = Fact(value: "crash", generation: generation)
            return again == expected ? [] : ["a store after the crash was lost"]
        } catch {
            return ["\(error)"]
        }
    }
}
