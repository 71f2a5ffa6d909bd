import TestLanes
import Testing
import TokenVault
import VaultAgent

/// The reasons of errors, on their way from the agent to a client.
@Suite(.tags(.programs), .from(.usual)) struct ReasonWireTests {
    private func transferred(_ reason: TokenStorageError.Reason?) throws -> TokenStorageError.Reason? {
        let error = TokenStorageError(.ioFailure, operation: "o", backend: "b", reason: reason)
        return try transferred { $0.append(error) }.reason
    }

    private func transferred(_ write: (WireWriter) -> Void) throws -> TokenStorageError {
        var error: TokenStorageError?
        try Samples.exchange { writer in
            write(writer)
        } read: { (reader) throws(WireError) in
            error = try reader.error()
        }
        return try #require(error)
    }

    @Test(arguments: TokenStorageError.Reason.samples)
    func everyReasonArrivesAsItWasSent(_ reason: TokenStorageError.Reason) throws {
        #expect(try transferred(reason) == reason)
        #expect(try transferred(.damagedCopy(reason)) == .damagedCopy(reason))
    }

    @Test func anErrorWithoutAReasonArrivesWithoutOne() throws { #expect(try transferred(nil) == nil) }

    @Test func theReasonOfANewerAgentArrivesAsItsText() throws {
        for coded in [
            CodedReason(name: "notYetInvented", values: []),
            CodedReason(name: "damage", values: [.text("notYetInvented"), .number(1)]),
            CodedReason(name: "damage", values: [.text("frame")]),
            CodedReason(name: "damage", values: [.text("frame"), .number(1), .number(2)]),
            CodedReason(name: "noLocks", values: [.number(.max)]),
            CodedReason(
                name: "damagedCopy", values: [.reason(CodedReason(name: "notYetInvented", values: []))]),
        ] {
            let error = try transferred { writer in
                for text in ["ioFailure", "o", "b"] { writer.append(text: text) }
                writer.append(flag: true)
                writer.append(coded)
                writer.append("what it is" as String?) { writer.append(text: $0) }
                writer.append(nil as String?) { writer.append(text: $0) }
                writer.append(nil as Generation?) { writer.append($0) }
            }
            #expect(error.reason == .other(explanation: "what it is", advice: nil), "\(coded)")
            #expect(error.underlying == "what it is")
        }
    }

    @Test func reasonsBehindReasonsHaveABound() throws {
        var reason = TokenStorageError.Reason.agentDirectoryClosed
        for _ in 0..<20 { reason = .damagedCopy(reason) }
        let arrived = try #require(try transferred(reason))
        #expect(arrived == .damagedCopy(.damagedCopy(.damagedCopy(.damagedCopy(.damagedCopy(nil))))))
    }

    @Test func aReasonWithMoreValuesThanTheBoundArrivesWithAsManyAsFit() throws {
        let groups = Array(1...100)
        #expect(try transferred(.mistypedGroups(groups)) == .mistypedGroups(Array(1...64)))
    }

    @Test func everyReasonHasAnExplanationOrAdvice() {
        for reason in TokenStorageError.Reason.samples {
            let error = TokenStorageError(.ioFailure, operation: "o", backend: "b", reason: reason)
            let isSilent =
                switch reason {
                case .noCandidate([]), .choiceDirectory, .deviceKeyMissing: false
                default: error.underlying == nil && error.advice == nil
                }
            #expect(!isSilent, "\(reason)")
        }
    }
}
