import Testing
import TokenVault

@Suite struct TokenChangesTests {
    private let hub = ChangeHub()
    private let service = "com.example.app"

    private func stored(_ key: String, _ generation: UInt64) -> TokenEvent {
        .stored(TokenKey(key), Generation(rawValue: generation))
    }

    /// Everything that waits for the reader of a hub that has ended.
    private func rest(_ changes: TokenChanges) async -> [TokenEvent] {
        hub.end()
        return await changes.reduce(into: []) { $0.append($1) }
    }

    @Test func eventsComeInTheOrderOfTheirFirstChange() async {
        let changes = hub.subscribe(service: service)
        hub.publish(service: service, stored("a", 1))
        hub.publish(service: service, stored("b", 2))
        hub.publish(service: service, .deleted("c", 3))
        #expect(await rest(changes) == [stored("a", 1), stored("b", 2), .deleted("c", 3)])
    }

    @Test func whatWaitsIsTheLatestOfEachKey() async {
        let changes = hub.subscribe(service: service)
        hub.publish(service: service, stored("a", 1))
        hub.publish(service: service, stored("b", 2))
        hub.publish(service: service, stored("a", 3))
        hub.publish(service: service, .deleted("b", 4))
        #expect(await rest(changes) == [stored("a", 3), .deleted("b", 4)])
    }

    @Test func keysAreToldApartByBytes() async {
        let changes = hub.subscribe(service: service)
        hub.publish(service: service, stored("\u{e9}", 1))
        hub.publish(service: service, stored("e\u{301}", 2))
        #expect(await rest(changes) == [stored("\u{e9}", 1), stored("e\u{301}", 2)])
    }

    @Test func servicesAreToldApartByBytes() async {
        let composed = hub.subscribe(service: "\u{e9}")
        hub.publish(service: "e\u{301}", stored("a", 1))
        hub.publish(service: "\u{e9}", stored("b", 2))
        #expect(await rest(composed) == [stored("b", 2)])
    }

    @Test func asManyKeysAsFitAreKept() async {
        let changes = hub.subscribe(service: service)
        for index in 0..<1_024 { hub.publish(service: service, stored("key \(index)", UInt64(index))) }
        // Another change of a waiting key does not use additional room.
        hub.publish(service: service, stored("key 0", 5_000))
        let events = await rest(changes)
        #expect(events.count == 1_024)
        #expect(events.first == stored("key 0", 5_000))
    }

    @Test func oneKeyMoreOverflowsAndLaterChangesFollow() async {
        let changes = hub.subscribe(service: service)
        for index in 0...1_024 { hub.publish(service: service, stored("key \(index)", UInt64(index))) }
        hub.publish(service: service, stored("later", 2_000))
        #expect(await rest(changes) == [.overflowed, stored("later", 2_000)])
    }

    @Test func anOverflowCanBePublished() async {
        let changes = hub.subscribe(service: service)
        hub.publish(service: service, stored("dropped", 1))
        hub.publish(service: service, .overflowed)
        hub.publish(service: service, .overflowed)
        hub.publish(service: service, stored("later", 2))
        #expect(await rest(changes) == [.overflowed, stored("later", 2)])
    }

    @Test func aWaitingReaderIsWoken() async {
        let changes = hub.subscribe(service: service)
        async let first = changes.first { _ in true }
        hub.publish(service: service, stored("a", 1))
        #expect(await first == stored("a", 1))
    }

    @Test func eachSubscriptionIsItsOwn() async {
        let one = hub.subscribe(service: service)
        hub.publish(service: service, stored("a", 1))
        let two = hub.subscribe(service: service)
        hub.publish(service: service, stored("b", 2))
        hub.end()
        #expect(await one.reduce(into: []) { $0.append($1) } == [stored("a", 1), stored("b", 2)])
        #expect(await two.reduce(into: []) { $0.append($1) } == [stored("b", 2)])
    }

    @Test func iteratorsOfOneSequenceShareItsEvents() async {
        let changes = hub.subscribe(service: service)
        hub.publish(service: service, stored("a", 1))
        hub.publish(service: service, stored("b", 2))
        var one = changes.makeAsyncIterator()
        var two = changes.makeAsyncIterator()
        #expect(await one.next() == stored("a", 1))
        #expect(await two.next() == stored("b", 2))
    }

    @Test func anEndEndsWhoWaitsAndWhoComesLater() async {
        let early = hub.subscribe(service: service)
        async let waiting = early.first { _ in true }
        hub.end()
        #expect(await waiting == nil)
        let late = hub.subscribe(service: service)
        hub.publish(service: service, stored("a", 1))
        #expect(await late.first { _ in true } == nil)
    }

    @Test func aReaderThatIsGoneIsNotKept() {
        var changes: TokenChanges? = hub.subscribe(service: service)
        #expect(hub.isObserved)
        withExtendedLifetime(changes) {}
        changes = nil
        #expect(!hub.isObserved)
    }

    @MainActor
    @Test(.timeLimit(.minutes(20)))
    func aSecondReaderOfOneSequenceEndsTheFirst() async {
        let changes = hub.subscribe(service: service)
        let read = { @MainActor in
            var iterator = changes.makeAsyncIterator()
            return await iterator.next()
        }
        let first = Task { await read() }
        await Task.yield()
        let second = Task { await read() }
        #expect(await first.value == nil)
        hub.publish(service: service, stored("a", 1))
        #expect(await second.value == stored("a", 1))
    }

    @Test func aCancelledReaderEnds() async {
        let changes = hub.subscribe(service: service)
        let reader = Task { await changes.first { _ in true } }
        reader.cancel()
        #expect(await reader.value == nil)
        // A later change reaches the next reader.
        hub.publish(service: service, stored("a", 1))
        #expect(await rest(changes) == [stored("a", 1)])
    }
}
