#if OAuth
import Foundation
import NIOHTTP1
import TestLanes
import Testing
import TokenVaultAuth
@testable import TokenVaultOAuth

/// Some gateways compress answers that the client requested uncompressed (RFC 9110 section 8.4).
@Suite(.tags(.provider), .from(.all)) struct CompressedAnswerTests {
    /// The bytes of `text`, compressed by another program.
    private func compressed(_ text: String, _ coding: String) throws -> [UInt8] {
        let module = coding == "gzip" ? "gzip" : "zlib"
        let program = Process()
        program.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        program.arguments = [
            "-c",
            "import sys, \(module); sys.stdout.buffer.write(\(module).compress(sys.stdin.buffer.read()))",
        ]
        let (input, output) = (Pipe(), Pipe())
        (program.standardInput, program.standardOutput) = (input, output)
        try program.run()
        // The compressed output is small, so neither pipe fills.
        try input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
        try input.fileHandleForWriting.close()
        let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
        program.waitUntilExit()
        try #require(program.terminationStatus == 0 && !bytes.isEmpty)
        return Array(bytes)
    }

    private func reply(_ bytes: [UInt8], _ coding: String, status: Int = 200) -> ScriptedServer.Reply {
        ScriptedServer.Reply(
            status: status, headers: [("Content-Type", "application/json"), ("Content-Encoding", coding)],
            bytes: bytes)
    }

    @Test(arguments: ["gzip", "deflate"]) func compressedAnswersAreRead(_ coding: String) async throws {
        let server = try await ScriptedServer(always: reply(try compressed(tokenAnswer, coding), coding))
        #expect(try await refreshRequest(try client(server)).get().accessToken == "fake-access")
        #expect(server.asked.first?.headers["Accept-Encoding"] == ["identity"])
        let refusing = try await ScriptedServer(
            always: reply(try compressed(#"{"error":"invalid_grant"}"#, coding), coding, status: 400))
        #expect(await refreshRequest(try client(refusing)).failure?.kind == .invalidGrant)
    }

    /// The bound applies to the decompressed length.
    @Test(arguments: ["gzip", "deflate"]) func anAnswerThatGrowsTooLargeIsUnusable(_ coding: String)
        async throws
    {
        let spaces = String(repeating: " ", count: 1 << 20)
        for (text, isRead) in [(tokenAnswer + spaces.dropLast(1_000), true), (tokenAnswer + spaces, false)] {
            let server = try await ScriptedServer(always: reply(try compressed(text, coding), coding))
            let outcome = await refreshRequest(try client(server))
            #expect(outcome.failure?.kind == (isRead ? nil : .unusable(200)))
        }
    }

    /// The provider has answered, so the refresh token may be used up.
    @Test(arguments: ["gzip", "deflate"]) func brokenCompressionIsUnusable(_ coding: String) async throws {
        let whole = try compressed(tokenAnswer, coding)
        let broken: [[UInt8]] = [
            Array(whole.dropLast(9)), [1, 2, 3, 4], Array(whole.prefix(3)) + Array(whole.dropFirst(20)),
        ]
        for bytes in broken {
            let server = try await ScriptedServer(always: reply(bytes, coding))
            #expect(await refreshRequest(try client(server)).failure?.kind == .unusable(200))
        }
    }

    /// The status and `Retry-After` count even if the body cannot be decompressed.
    @Test(arguments: ["gzip", "deflate"]) func theStatusOfABrokenBodyCounts(_ coding: String) async throws {
        for body in [[], [1, 2, 3, 4]] as [[UInt8]] {
            var busy = reply(body, coding, status: 503)
            busy.headers.append(("Retry-After", "7"))
            let failure = await refreshRequest(try client(try await ScriptedServer(always: busy))).failure
            #expect(failure?.kind == .throttled && failure?.retryAfter != nil)
            // A revocation needs no body.
            let server = try await ScriptedServer(always: reply(body, coding))
            let revoke = try #require(try client(server).revokeRequestProvider)
            try await revoke(TokenInfo(accessToken: "fake"))
        }
    }

    @Test func anotherCodingIsUnusable() async throws {
        let server = try await ScriptedServer(always: reply([0x0b, 0x02, 0x80, 0x41, 0x03], "br"))
        #expect(await refreshRequest(try client(server)).failure?.kind == .unusable(200))
    }
}
#endif
