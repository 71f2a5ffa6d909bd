import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform
import VaultAgent

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension AgentOperation: CustomTestStringConvertible {
    /// The name of the request.
    public var testDescription: String { "\(kind)" }
}

/// Messages of every kind.
enum Samples {
    static let vault = VaultReference(
        path: "/home/someone/é.vault", identifier: "00112233445566778899aabbccddeeff")

    static let metadata = TokenMetadata(
        key: "access_token", service: "com.example.app", policy: .afterFirstUnlock, label: "a label",
        attributes: ["host": "example.com", "": "odd"], created: Date(timeIntervalSince1970: 1e9 + 1 / 3),
        modified: Date(timeIntervalSince1970: 0), expires: .distantFuture, generation: 4_711)

    static let requests: [AgentOperation] = {
        let date = Date(timeIntervalSince1970: 1.5e9 + 0.1)
        let details = TokenDetails(
            policy: .whenPasscodeSetThisDeviceOnly, label: "", attributes: ["a": "1", "b": "2"],
            expiry: .at(date))
        let secret = Secret(utf8: "not a real token")
        return [
            .secret(service: "s", key: "k"), .item(service: "s", key: "é"), .metadata(service: "", key: ""),
            .list(service: nil, query: .all),
            .list(service: "s", query: TokenQuery(prefix: "p", attributes: ["a": "b"])),
            .commit(
                service: "s",
                changes: [
                    .store(secret, for: "k", details: details, expecting: .absent),
                    .store(
                        Secret([]), for: "k", details: TokenDetails(expiry: .never), expecting: .generation(5)
                    ),
                    .update("k", details: details), .delete("k"), .rename("k", to: "l"),
                ]),
            .commitPart(service: "s", changes: [.delete("k")]),
            .commit(service: "s", changes: []), .deleteAll(service: "s"),
            .history(service: "s", key: "k"), .undo(service: "s", key: "é", to: nil),
            .undo(service: "s", key: "k", to: Generation(rawValue: 9)), .state, .status,
            .unlock(
                UnlockOrder(method: .passphrase(secret), stateDirectory: "/state", idleTime: .seconds(900))),
            .unlock(
                UnlockOrder(method: .keyFile(secret), stateDirectory: nil, idleTime: nil, isTimeAsked: false)),
            .unlock(UnlockOrder(method: .secretService(secret), stateDirectory: nil, idleTime: .seconds(1))),
            .lock, .close, .subscribe(service: "s"), .vaults, .lockAll, .stop,
        ]
    }()

    /// The frame of a request.
    static func frame(_ operation: AgentOperation) throws -> [UInt8] {
        let buffer = WipedBuffer(capacity: 64)
        var writer = WireWriter(buffer)
        try #require(AgentRequest(id: 77, vault: vault, operation: operation).write(to: &writer))
        return try #require(buffer.array(in: 0..<buffer.count))
    }

    /// The request of a frame; `nil` when it is not all there.
    static func read(_ bytes: [UInt8]) throws -> AgentRequest? {
        let buffer = WipedBuffer(capacity: 64)
        buffer.append(bytes)
        guard let range = try WireFrame.payload(in: buffer) else { return nil }
        var reader = WireReader(buffer, in: range)
        return try AgentRequest(&reader)
    }

    /// Writes something and reads it to the end.
    static func exchange(
        write: (inout WireWriter) -> Void, read: (inout WireReader) throws(WireError) -> Void
    ) throws {
        let buffer = WipedBuffer(capacity: 64)
        var writer = WireWriter(buffer)
        write(&writer)
        var reader = WireReader(buffer, in: 0..<buffer.count)
        try read(&reader)
        try reader.finish()
    }

    /// What is read of a value that was written.
    static func roundTrip<Value>(
        _ value: Value, _ write: (inout WireWriter, Value) -> Void,
        _ read: (inout WireReader) throws(WireError) -> Value
    ) throws -> Value {
        let buffer = WipedBuffer(capacity: 64)
        var writer = WireWriter(buffer)
        write(&writer, value)
        var reader = WireReader(buffer, in: 0..<buffer.count)
        let result = try read(&reader)
        try reader.finish()
        return result
    }
}
