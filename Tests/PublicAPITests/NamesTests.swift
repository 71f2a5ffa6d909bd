import Testing
import TokenVault

@Suite struct NamesTests {
    private let composed = "\u{e9}"
    private let decomposed = "e\u{301}"

    @Test func keysCompareAndHashByBytes() {
        #expect(composed == decomposed, "String compares by characters")
        #expect(TokenKey(composed) != TokenKey(decomposed))
        #expect(Set([TokenKey(composed), TokenKey(decomposed), TokenKey("\u{e9}")]).count == 2)
        #expect(TokenKey("a") == "a")
        #expect(TokenKey("a").hashValue == TokenKey("a").hashValue)
        #expect(TokenKey("\(1)-a") == "1-a")
        #expect(TokenKey("key").description == "key")
    }

    @Test func equalKeysHashAlikeHoweverTheirStringsAreKept() {
        let long = String(repeating: "key ", count: 40)
        let built = long.split(separator: " ").reduce(into: "") { $0 += $1 + " " }
        #expect(Set([TokenKey(long), TokenKey(built), TokenKey(String(Array(long)))]).count == 1)
    }

    @Test func keysSortByBytes() {
        let keys = ["\u{1f511}", "\u{ff5e}", "é", "z", "e\u{301}", "e", "Z"].map { TokenKey($0) }
        #expect(keys.sorted() == ["Z", "e", "e\u{301}", "z", "é", "\u{ff5e}", "\u{1f511}"])
    }

    @Test func attributesCompareByBytesAndKeepTheirOrder() {
        let attributes: TokenAttributes = ["b": "2", "a": "1", "é": "composed", "e\u{301}": "decomposed"]
        #expect(attributes.map(\.name.utf8.count) == [1, 1, 3, 2])
        #expect(attributes["é"] == "composed")
        #expect(attributes["e\u{301}"] == "decomposed")
        #expect(attributes == ["e\u{301}": "decomposed", "a": "1", "é": "composed", "b": "2"])
        #expect(TokenAttributes([("a", composed)]) != TokenAttributes([("a", decomposed)]))
    }

    @Test func attributesAreReadAndChangedByName() {
        var attributes = TokenAttributes([("a", "1"), ("b", "2"), ("a", "3")])
        #expect(attributes.count == 2)
        #expect(attributes["a"] == "3")
        attributes["c"] = "4"
        attributes["a"] = nil
        attributes["absent"] = nil
        #expect(attributes == ["b": "2", "c": "4"])
        #expect(attributes.contains(["b": "2"]))
        #expect(attributes.contains([:]))
        #expect(!attributes.contains(["b": "3"]))
        #expect(!attributes.contains(["d": "2"]))
    }

    @Test func metadataQueriesAndDetailsCompareByBytes() async throws {
        #expect(TokenQuery(prefix: composed) != TokenQuery(prefix: decomposed))
        #expect(TokenDetails(label: composed) != TokenDetails(label: decomposed))
        let vault = InMemoryVault()
        let storage = vault.storage(service: "com.example.app")
        try await storage.store(token: "x", for: "key", label: composed)
        let metadata = try #require(try await storage.metadata(for: "key"))
        var other = metadata
        #expect(other == metadata)
        other.label = decomposed
        #expect(other != metadata)
        other = metadata
        other.service = "com.example.\(decomposed)"
        var composedService = other
        composedService.service = "com.example.\(composed)"
        #expect(other != composedService)
    }
}
