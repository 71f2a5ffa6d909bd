import Testing
import TokenVault

/// The conveniences of the blocking view, which has its own.
@Suite struct BlockingCallsTests {
    private let storage: any BlockingTokenStorage =
        InMemoryTokenStorage(service: "com.example.app").blocking

    @Test func compareAndStoreKeepsToTheGeneration() throws {
        let name = "key"
        let first = try storage.compareAndStore(Secret([1]), for: TokenKey(name), expected: nil)
        var error = #expect(throws: TokenStorageError.self) {
            try storage.compareAndStore(Secret([2]), for: "key", expected: nil)
        }
        #expect(error?.code == .conflict)
        #expect(error?.generation == first)
        let second = try storage.compareAndStore(Secret([2]), for: .init(name), expected: first)
        error = #expect(throws: TokenStorageError.self) {
            try storage.compareAndStore(Secret([3]), for: TokenKey(name), expected: first)
        }
        #expect(error?.generation == second)
        #expect(try storage.secret(for: TokenKey(name)) == Secret([2]))
    }

    @Test func compareAndDeleteKeepsToTheGeneration() throws {
        let name = "key"
        let first = try storage.store(Secret([1]), for: TokenKey(name))
        let second = try storage.store(Secret([2]), for: TokenKey(name))
        let error = #expect(throws: TokenStorageError.self) {
            try storage.compareAndDelete(for: TokenKey(name), expected: first)
        }
        #expect(error?.code == .conflict)
        #expect(try storage.compareAndDelete(for: TokenKey(name), expected: second))
        #expect(try !storage.compareAndDelete(for: "key", expected: second))
    }

    @Test func deleteSaysWhetherSomethingWasThere() throws {
        let name = "key"
        try storage.store(token: "x", for: TokenKey(name))
        #expect(try storage.delete(for: TokenKey(name)))
        #expect(try !storage.delete(for: TokenKey(name)))
    }

    @Test func bytesThatAreNoTextSaySo() throws {
        try storage.store(Secret([0xff]), for: "key")
        let error = #expect(throws: TokenStorageError.self) { try storage.retrieve(for: "key") }
        #expect(error?.code == .notText)
        #expect(try storage.item(for: "key")?.secret == Secret([0xff]))
    }

    @Test func detailsAreKept() throws {
        let name = "key"
        try storage.store(token: "x", for: TokenKey(name), label: "label", attributes: ["a": "b"])
        try storage.store(token: "y", for: TokenKey(name))
        let metadata = try #require(try storage.metadata(for: TokenKey(name)))
        #expect(metadata.label == "label")
        #expect(metadata.attributes == ["a": "b"])
        #expect(try storage.list(TokenQuery(attributes: ["a": "b"])).items == [metadata])
    }
}
