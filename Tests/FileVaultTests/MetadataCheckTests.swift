import Testing
import TokenVault

@testable import TokenVaultFile

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Metadata that is only checked is held to what decoding it takes.
@Suite struct MetadataCheckTests {
    private func metadata() -> [UInt8] {
        var attributes = TokenAttributes()
        attributes["scope"] = "openid profile"
        attributes["größe"] = "∞"
        return ItemCoding.metadata(
            StoredMetadata(
                metadata: TokenMetadata(
                    key: "refresh-token", service: "com.example.app", policy: .whenUnlocked, label: "Zürich",
                    attributes: attributes, created: Date(timeIntervalSince1970: 1),
                    modified: Date(timeIntervalSince1970: 2), expires: Date(timeIntervalSince1970: 3),
                    generation: Generation(rawValue: 1)),
                policyProof: [UInt8](repeating: 7, count: PolicyProof.length)))
    }

    private func isDecoded(_ bytes: [UInt8]) -> Bool {
        (try? ItemCoding.decodeMetadata(bytes, policy: .whenUnlocked, generation: 1)) != nil
    }

    @Test func everyChangedByteIsTakenOrRefusedByBoth() {
        let whole = metadata()
        #expect(ItemCoding.isMetadata(whole, count: whole.count) && isDecoded(whole))
        var refused = 0
        for place in whole.indices {
            for value: UInt8 in [0, 1, 0x7F, 0x80, 0xC3, 0xFF, whole[place] ^ 0x20] {
                var bytes = whole
                bytes[place] = value
                let isTaken = isDecoded(bytes)
                #expect(
                    ItemCoding.isMetadata(bytes, count: bytes.count) == isTaken, "byte \(place) is \(value)")
                if !isTaken { refused += 1 }
            }
        }
        #expect(refused > 100)
    }

    @Test func everyTruncationIsTakenOrRefusedByBoth() {
        let whole = metadata()
        for count in whole.indices {
            // The bytes behind the count belong to another plaintext.
            #expect(
                ItemCoding.isMetadata(whole, count: count) == isDecoded(Array(whole[..<count])),
                "\(count) bytes")
        }
    }
}
