import SystemPackage
import TestLanes
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

@Suite(.tags(.programs), .from(.usual)) struct WireTests {
    @Test(arguments: Samples.requests)
    func aRequestIsReadAsItWasWritten(_ operation: AgentOperation) throws {
        let bytes = try Samples.frame(operation)
        let request = try #require(try Samples.read(bytes))
        #expect(request.id == 77 && request.vault == Samples.vault)
        #expect(request.operation.kind == operation.kind)
        // A value has one encoding: writing the decoded request gives the same bytes.
        #expect(try Samples.frame(request.operation) == bytes)
    }

    @Test(arguments: Samples.requests)
    func everyTruncationIsRefused(_ operation: AgentOperation) throws {
        let bytes = try Samples.frame(operation)
        for length in 0..<bytes.count {
            // A frame that has not arrived whole is not read yet.
            #expect(try Samples.read(Array(bytes.prefix(length))) == nil)
            guard length > AgentWire.prefixLength + 5 else { continue }
            // A frame whose length field matches the truncation.
            var short = Array(bytes.prefix(length))
            let payload = UInt32(length - AgentWire.prefixLength)
            for index in 0..<4 { short[index] = UInt8(truncatingIfNeeded: payload >> (8 * index)) }
            #expect(throws: WireError.self) { try Samples.read(short) }
        }
        var long = bytes + [0]
        let payload = UInt32(long.count - AgentWire.prefixLength)
        for index in 0..<4 { long[index] = UInt8(truncatingIfNeeded: payload >> (8 * index)) }
        #expect(throws: WireError.self) { try Samples.read(long) }
    }

    @Test func changedBytesAreRefusedOrComeOutTheSame() throws {
        var generator = SystemRandomNumberGenerator()
        for operation in Samples.requests {
            let bytes = try Samples.frame(operation)
            for _ in 0..<300 {
                var changed = bytes
                for _ in 0..<Int.random(in: 1...3, using: &generator) {
                    let index = Int.random(in: AgentWire.prefixLength..<bytes.count, using: &generator)
                    changed[index] = UInt8.random(in: 0...255, using: &generator)
                }
                guard let request = try? Samples.read(changed) else { continue }
                let buffer = WipedBuffer(capacity: 64)
                var writer = WireWriter(buffer)
                #expect(request.write(to: &writer))
                #expect(buffer.array(in: 0..<buffer.count) == changed)
            }
        }
    }

    /// Which vault a request is about does not depend on the one before.
    @Test func aVaultThatIsKnownIsNoOther() throws {
        let identifier = "0123456789abcdef"
        let vaults = [
            VaultReference(path: "/a/b.vault"), VaultReference(path: "/a/b.vault", identifier: identifier),
            VaultReference(path: "/a/b.vault", identifier: ""), VaultReference(path: "/a/b.vaul"),
            VaultReference(path: "/a/b.vault/"), VaultReference(path: "/a/b.vault2"),
            VaultReference(path: "/a/c.vault"), VaultReference(path: ""),
        ]
        for (before, vault) in vaults.flatMap({ before in vaults.map { (before, $0) } }) {
            var known: KnownVault?
            for asked in [before, vault, vault] {
                let buffer = WipedBuffer(capacity: 64)
                var writer = WireWriter(buffer)
                #expect(AgentRequest(id: 1, vault: asked, operation: .state).write(to: &writer))
                let range = try #require(try WireFrame.payload(in: buffer))
                var reader = WireReader(buffer, in: range)
                #expect(try AgentRequest(&reader, knowing: &known).vault == asked)
            }
        }
    }

    @Test func randomBytesNeverTrap() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...200, using: &generator)
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            let buffer = WipedBuffer(capacity: 64)
            buffer.append(bytes)
            func read(_ body: (inout WireReader) throws(WireError) -> Void) {
                var reader = WireReader(buffer, in: 0..<buffer.count)
                do throws(WireError) { try body(&reader) } catch {}
            }
            read { (reader) throws(WireError) in _ = try AgentRequest(&reader) }
            read { (reader) throws(WireError) in _ = try reader.hello() }
            read { (reader) throws(WireError) in _ = try reader.item() }
            read { (reader) throws(WireError) in _ = try reader.commit() }
            read { (reader) throws(WireError) in _ = try reader.error() }
            read { (reader) throws(WireError) in _ = try reader.event() }
            read { (reader) throws(WireError) in _ = try reader.facts() }
            read { (reader) throws(WireError) in _ = try reader.status() }
            read { (reader) throws(WireError) in
                var listing = TokenListing(items: [])
                try reader.addPage(to: &listing, isLast: true)
            }
        }
    }

    @Test func anAnnouncedLengthIsRefusedBeforeAnythingIsThere() throws {
        for length in [UInt32.max, UInt32(AgentWire.maximumPayload) + 1, 4, 0] {
            let buffer = WipedBuffer(capacity: 64)
            buffer.append(length)
            #expect(throws: WireError.outOfBounds) { try WireFrame.payload(in: buffer) }
            #expect(buffer.capacity == 64)
        }
        let buffer = WipedBuffer(capacity: 64)
        buffer.append(UInt32(AgentWire.maximumPayload))
        #expect(try WireFrame.payload(in: buffer) == nil)
        #expect(buffer.capacity == 64)
    }

    @Test func moreAttributesThanAnItemHasAreNotRead() throws {
        for count in [64, 65] {
            var attributes = TokenAttributes()
            for index in 0..<count { attributes["\(index)"] = "fake" }
            let bytes = try Samples.frame(.list(service: "s", query: TokenQuery(attributes: attributes)))
            if count == 64 {
                #expect(try Samples.read(bytes) != nil)
            } else {
                #expect(throws: WireError.outOfBounds) { try Samples.read(bytes) }
            }
        }
    }

    @Test func aSecretOfEveryLengthFitsAndMoreDoesNot() throws {
        let secret = Secret(repeatElement(UInt8(7), count: Secret.maximumLength))
        let name = String(repeating: "n", count: 1_024)
        var details = TokenDetails(label: name, attributes: [:])
        for index in 0..<30 { details.attributes?["\(index)" + name.dropLast(2)] = name }
        let change = TokenChange.store(secret, for: TokenKey(name), details: details)
        let bytes = try Samples.frame(.commit(service: name, changes: [change]))
        #expect(try Samples.read(bytes) != nil)
        let buffer = WipedBuffer(capacity: 64)
        var writer = WireWriter(buffer)
        let two = AgentRequest(
            id: 1, vault: Samples.vault,
            operation: .commit(service: "s", changes: [change, change, .delete("k")]))
        #expect(two.write(to: &writer))
        var kinds: [AgentWire.Kind] = []
        while let range = try WireFrame.payload(in: buffer) {
            kinds.append(try WireFrame.kind(of: buffer, range))
            buffer.removeFirst(range.upperBound)
        }
        #expect(kinds == [.commitPart, .commit] && buffer.count == 0)
        // A secret that no vault accepts fits into no frame, and leaves nothing in the buffer.
        let more = Secret(repeatElement(UInt8(7), count: 2 << 20))
        let three = AgentRequest(
            id: 1, vault: Samples.vault,
            operation: .commit(service: "s", changes: [change, .store(more, for: "k")]))
        #expect(!three.write(to: &writer) && buffer.count == 0)
    }

    @Test func answersAreReadAsTheyWereWritten() throws {
        let listing = TokenListing(
            items: [Samples.metadata, Samples.metadata], hidden: 3,
            hiddenReasons: [.locked: 2, .wrongDevice: 1])
        var read = TokenListing(items: [])
        try Samples.exchange { writer in
            writer.appendEnd(of: listing)
            for item in listing.items { writer.append(item) }
        } read: { (reader) throws(WireError) in
            try reader.addPage(to: &read, isLast: true)
        }
        #expect(read == listing)
        let error = TokenStorageError(
            .conflict, operation: "store", backend: "file",
            reason: .other(explanation: "u", advice: "a"), generation: 9)
        let item = TokenItem(metadata: Samples.metadata, secret: Secret(utf8: "not a real token"))
        let commit = TokenCommit(generation: 12, existed: [true, false])
        let facts = VaultInfo(
            identifier: "00ff", state: .afterFirstUnlock,
            supportedPolicies: [.whenUnlocked, .afterFirstUnlock],
            defaultPolicy: .whenUnlocked)
        var status = AgentVaultStatus(path: "/a/b", state: .unlocked, items: 4)
        status.idleTime = .seconds(900)
        status.sessionObstacle = "no bus"
        #expect(
            try Samples.roundTrip(error, { $0.append($1) }) { (r) throws(WireError) in try r.error() }
                == error)
        #expect(
            try Samples.roundTrip(item, { $0.append($1) }) { (r) throws(WireError) in try r.item() } == item)
        #expect(
            try Samples.roundTrip(commit, { $0.append($1) }) { (r) throws(WireError) in try r.commit() }
                == commit)
        #expect(
            try Samples.roundTrip(facts, { $0.append($1) }) { (r) throws(WireError) in try r.facts() }
                == facts)
        #expect(
            try Samples.roundTrip(status, { $0.append($1) }) { (r) throws(WireError) in try r.status() }
                == status)
        for event in [TokenEvent.stored("k", 1), .deleted("é", 2), .overflowed] {
            #expect(
                try Samples.roundTrip(event, { $0.append($1) }) { (r) throws(WireError) in try r.event() }
                    == event)
        }
    }

    @Test func anErrorOfANewerAgentIsUnavailable() throws {
        try Samples.exchange { writer in
            writer.append(text: "heatDeath")
            for text in ["retrieve", "file"] { writer.append(text: text) }
            for _ in 0..<4 { writer.append(flag: false) }
        } read: { (reader) throws(WireError) in
            #expect(try reader.error().code == .unavailable)
        }
    }

    @Test func aBufferIsWipedAndGivenBack() {
        let buffer = WipedBuffer(capacity: 64)
        for value in 0..<1_000 { buffer.append(UInt64(value)) }
        #expect(buffer.integer(at: 8 * 999, as: UInt64.self) == 999)
        #expect(buffer.integer(at: 8 * 999 + 1, as: UInt64.self) == nil)
        buffer.removeFirst(8 * 998)
        #expect(buffer.count == 16 && buffer.integer(at: 0, as: UInt64.self) == 998)
        #expect(buffer.array(in: 0..<17) == nil && buffer.text(in: -1..<3) == nil)
        buffer.removeAll()
        #expect(buffer.capacity == 64 && buffer.count == 0)
    }
}
