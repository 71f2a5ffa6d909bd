import Testing
import TokenVault

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite struct VocabularyTests {
    @Test func policiesSayWhatTheyPromise() {
        let portable: Set<AccessPolicy> = [.whenUnlocked, .afterFirstUnlock]
        let afterFirstUnlock: Set<AccessPolicy> = [.afterFirstUnlock, .afterFirstUnlockThisDeviceOnly]
        for policy in AccessPolicy.allCases {
            #expect(policy.isThisDeviceOnly != portable.contains(policy))
            #expect(policy.isReadableAfterFirstUnlock == afterFirstUnlock.contains(policy))
            #expect(AccessPolicy(rawValue: policy.rawValue) == policy)
            #expect(policy.rawValue.hasSuffix("-this-device-only") == policy.isThisDeviceOnly)
        }
        #expect(AccessPolicy.allCases.count == 5)
    }

    @Test func generationsAreNumbers() throws {
        #expect(Generation(rawValue: 3) < 4)
        #expect(Generation(rawValue: 9_007_199_254_740_991).description == "9007199254740991")
        let json = try JSONEncoder().encode([Generation(rawValue: 7)])
        #expect(String(decoding: json, as: UTF8.self) == "[7]")
        #expect(try JSONDecoder().decode([Generation].self, from: json) == [7])
    }

    @Test func expiryIsReachedAtItsTime() throws {
        let date = Date(timeIntervalSince1970: 1_000)
        var metadata = TokenMetadata(
            key: "key", service: "service", policy: .whenUnlocked, created: date, modified: date,
            expires: date, generation: 1)
        #expect(metadata.isExpired(at: date))
        #expect(metadata.isExpired(at: date + 1))
        #expect(!metadata.isExpired(at: date - 1))
        metadata.expires = nil
        #expect(!metadata.isExpired(at: .distantFuture))
    }

    @Test func operationsAreNamedAfterTheOneChange() {
        #expect(CommitRules.operation([.store(Secret([]), for: "a")]) == "store")
        #expect(CommitRules.operation([.update("a", details: TokenDetails())]) == "update")
        #expect(CommitRules.operation([.delete("a")]) == "delete")
        #expect(CommitRules.operation([.rename("a", to: "b")]) == "rename")
        #expect(CommitRules.operation([.delete("a"), .delete("b")]) == "commit")
        #expect(CommitRules.operation([]) == "commit")
    }

    @Test func controlCharactersAreFoundWhereverTheyAre() throws {
        let validation = Validation(operation: "store", backend: "memory")
        let controls = Set((0x00...0x1f).map(UInt32.init) + (0x7f...0x9f).map(UInt32.init))
        // All characters of up to two bytes, also those with a byte of a control character, and some of three
        // and four.
        for value in Array(0..<UInt32(0x800)) + [0x2028, 0x20ac, 0xfffd, 0x1f511] {
            let scalar = Unicode.Scalar(value).map { String(Character($0)) }
            let text = try #require(scalar)
            for name in [text, "a\(text)", "\(text)b", "é\(text)🔑"] {
                let isRefused = (try? validation.check(details: TokenDetails(label: name))) == nil
                #expect(isRefused == controls.contains(value), "U+\(String(value, radix: 16))")
                #expect(throws: Never.self) { try validation.check(key: TokenKey(name)) }
            }
        }
    }

    @Test func keysAreEqualByTheirBytes() {
        let names = ["", "a", "b", "ab", "ba", "\u{e9}", "e\u{301}", "\u{212b}", "\u{c5}"]
        let long = String(repeating: "a", count: 100)
        let all = names + [long, long + "b", long + "c", "b" + long]
        for left in all {
            for right in all {
                let areSame = Array(left.utf8) == Array(right.utf8)
                #expect((TokenKey(left) == TokenKey(right)) == areSame)
            }
        }
    }

    @Test func validationSpeaksForItsCaller() {
        let validation = Validation(operation: "someOperation", backend: "someBackend")
        let error = #expect(throws: TokenStorageError.self) {
            try validation.check(key: TokenKey(String(repeating: "a", count: 1_025)))
        }
        #expect(error?.code == .invalidKey)
        #expect(error?.operation == "someOperation")
        #expect(error?.backend == "someBackend")
    }

    @Test func aRefusedPolicyIsAdvisedOn() {
        let validation = Validation(operation: "store", backend: "test")
        let changes: [TokenChange] = [
            .store(Secret([1]), for: "a", details: TokenDetails(policy: .whenPasscodeSetThisDeviceOnly))
        ]
        let error = #expect(throws: TokenStorageError.self) {
            try validation.check(
                policiesOf: changes, supported: [.whenUnlocked], defaultPolicy: .whenUnlocked)
        }
        #expect(error?.code == .unsupportedPolicy)
        #expect(error?.advice?.contains("when-unlocked") == true)
        #expect(throws: Never.self) {
            try validation.check(
                policiesOf: changes, supported: [.whenPasscodeSetThisDeviceOnly],
                defaultPolicy: .whenUnlocked)
        }
    }
}
