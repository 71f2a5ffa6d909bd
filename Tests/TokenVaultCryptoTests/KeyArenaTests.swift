import Glibc
import Testing
import TokenVaultCrypto
import TokenVaultPlatform

/// The memory of keys: what the system is asked for, and that it was granted.
@Suite struct KeyArenaTests {
    @Test(arguments: [false, true])
    func keysComeAndGo(_ isSecret: Bool) throws {
        let arena = KeyArena(wantsSecretPages: isSecret)
        #expect(arena.contents.isEmpty)
        // More keys than fit into a page.
        var keys: [SymmetricKey] = []
        for number in 0..<300 {
            keys.append(try SymmetricKey(in: arena) { (target) throws(CryptoError) in fill(target, number) })
        }
        #expect(!arena.contents.isEmpty)
        for (number, key) in keys.enumerated() { #expect(key.withBytes { holds($0, number) } == true) }
        keys[7].wipe()
        keys.append(try SymmetricKey(in: arena) { (target) throws(CryptoError) in fill(target, 300) })
        for (number, key) in keys.enumerated() where number != 7 {
            #expect(key.withBytes { holds($0, number) } == true)
        }
        keys = []
        #expect(arena.contents.isEmpty)
    }

    @Test func aKeyThatWasNotMadeLeavesNothing() throws {
        let arena = KeyArena(wantsSecretPages: false)
        #expect(throws: CryptoError.invalidParameter) {
            try SymmetricKey(in: arena) { (target) throws(CryptoError) in
                fill(target, 1)
                throw .invalidParameter
            }
        }
        #expect(arena.contents.isEmpty)
    }

    @Test func pagesAreLockedGuardedAndLeftOutOfDumpsAndChildren() throws {
        let pages = try #require(GuardedPages(count: 2))
        // This process may lock memory. A refusal shows only in a process with a low limit.
        #expect(pages.protection == .locked)
        let flags = try #require(try Mapping.flags(of: pages.bytes))
        #expect(flags.isSuperset(of: ["lo", "dd", "wf"]), "\(flags)")
        let size = Int(sysconf(Int32(_SC_PAGESIZE)))
        let start = try #require(pages.bytes.baseAddress)
        for address in [start - size, start + pages.bytes.count] {
            #expect(try Mapping.permissions(at: UInt(bitPattern: address)) == "---p")
        }
    }

    @Test func secretPagesAreOutOfTheKernelsReach() throws {
        let pages = try #require(GuardedPages(count: 1, asSecret: true))
        // Without secret pages in the kernel, the pages are locked instead.
        guard pages.protection == .secret else {
            #expect(pages.protection == .locked)
            return
        }
        pages.bytes[0] = 7
        #expect(pages.bytes[0] == 7)
        let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        defer { close(memory) }
        var byte: UInt8 = 0
        let offset = off_t(Int(bitPattern: pages.bytes.baseAddress))
        #expect(pread(memory, &byte, 1, offset) == -1)
        #expect(try #require(try Mapping.flags(of: pages.bytes)).isSuperset(of: ["lo", "dc"]))
    }

    @Test func keysGoWhereTheyAreWantedFromThenOn() throws {
        let arena = KeyArena(wantsSecretPages: false)
        let before = try SymmetricKey(in: arena) { (target) throws(CryptoError) in fill(target, 1) }
        #expect(try arena.protection() == .locked)
        arena.wantSecretPages()
        before.wipe()
        let after = try SymmetricKey(in: arena) { (target) throws(CryptoError) in fill(target, 2) }
        let isThere = after.withBytes { bytes in
            (try? Mapping.name(at: UInt(bitPattern: bytes.baseAddress)))?.contains("secretmem") ?? false
        }
        #expect(isThere == (GuardedPages(count: 1, asSecret: true)?.protection == .secret))
    }

    /// Fills a key in a way of its own.
    private func fill(_ target: UnsafeMutableRawBufferPointer, _ number: Int) {
        for index in target.indices { target[index] = UInt8(truncatingIfNeeded: number &* 31 &+ index | 1) }
    }

    private func holds(_ bytes: UnsafeRawBufferPointer, _ number: Int) -> Bool {
        bytes.indices.allSatisfy { bytes[$0] == UInt8(truncatingIfNeeded: number &* 31 &+ $0 | 1) }
    }
}

/// What the kernel tells of this process's memory.
private enum Mapping {
    /// The flags of the mapping that is exactly `bytes`: proc(5), `VmFlags`.
    static func flags(of bytes: UnsafeMutableRawBufferPointer) throws -> Set<String>? {
        let start = String(UInt(bitPattern: bytes.baseAddress), radix: 16)
        let end = String(UInt(bitPattern: bytes.baseAddress) + UInt(bytes.count), radix: 16)
        let lines = try lines(of: "/proc/self/smaps")
        guard let first = lines.firstIndex(where: { $0.hasPrefix("\(start)-\(end) ") }) else { return nil }
        let line = lines[first...].first { $0.hasPrefix("VmFlags:") }
        return line.map { Set($0.split(separator: " ").dropFirst().map(String.init)) }
    }

    static func permissions(at address: UInt) throws -> String? { try fields(at: address)?[1] }

    static func name(at address: UInt) throws -> String? {
        try fields(at: address)?.dropFirst(5).joined(separator: " ")
    }

    private static func fields(at address: UInt) throws -> [String]? {
        for line in try lines(of: "/proc/self/maps") {
            let fields = line.split(separator: " ", omittingEmptySubsequences: true).map(String.init)
            let ends = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            if ends.count == 2, (ends[0]..<ends[1]).contains(address) { return fields }
        }
        return nil
    }

    private static func lines(of path: String) throws -> [String] {
        let file = try #require(fopen(path, "r"))
        defer { fclose(file) }
        var lines: [String] = []
        var line = [CChar](repeating: 0, count: 4096)
        while fgets(&line, Int32(line.count), file) != nil {
            let text = line.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }
            lines.append(String(decoding: text, as: UTF8.self))
        }
        return lines
    }
}
