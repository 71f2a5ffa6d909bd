import ProgramSupport
import TestLanes
import Testing
import TokenVault

@testable import vaultctl

@Suite(.tags(.programs), .from(.usual)) struct ExitStatusTests {
    /// The contract's table, for every code there is.
    @Test func everyErrorHasItsStatus() {
        let table: [Int32: Set<TokenStorageError.Code>] = [
            1: [
                .tooLarge, .unsupportedPolicy, .notText, .encodingFailed, .decodingFailed, .noSpace,
                .readOnly,
                .ioFailure, .resourcesExhausted, .cancelled, .closed, .tooManySlots, .lastSlot,
                .internalError,
            ],
            3: [.notFound, .slotNotFound],
            4: [.locked],
            5: [.wrongPassphrase, .notPermitted],
            6: [.wrongDevice],
            7: [.corrupt, .rolledBack, .forked, .unexpectedVault],
            8: [.unavailable, .notAVault, .unsupportedFormat, .insecurePermissions],
            9: [.conflict, .alreadyExists, .duplicateVault],
            10: [.timedOut, .outcomeUnknown],
            64: [.invalidKey, .invalidArgument],
        ]
        for code in TokenStorageError.Code.allCases {
            let expected = table.first { $0.value.contains(code) }?.key
            #expect(ExitStatus(code).rawValue == expected, "\(code)")
        }
    }

    @Test func aLineIsOneLine() {
        let error = TokenStorageError(
            .corrupt, operation: "open", backend: "file",
            reason: .other(explanation: "pread: a\nb", advice: "c\u{1b}[2Jd"))
        #expect(CommandFailure(error).line == "vaultctl: \(error.code.summary) (pread: a?b): c?[2Jd")
    }

    @Test func anUnknownOutcomeNamesTheGeneration() {
        let error = TokenStorageError(
            .outcomeUnknown, operation: "store", backend: "file", generation: 12)
        #expect(CommandFailure(error).line.contains("generation 12"))
    }
}
