import Testing
import TokenVault

@Suite struct ErrorTests {
    private let storage: any TokenStorage = {
        let vault = InMemoryVault()
        vault.setLockState(.locked)
        return vault.storage(service: "com.example.app")
    }()

    @Test func anErrorIsCaughtByItsCode() async throws {
        var caught = ""
        do {
            _ = try await storage.retrieve(for: "key")
            caught = "nothing"
        } catch TokenStorageError.Code.corrupt {
            caught = "corrupt"
        } catch TokenStorageError.Code.locked {
            caught = "locked"
        } catch {
            throw error
        }
        #expect(caught == "locked")
    }

    @Test func aTypedErrorIsCaughtByItsCode() async throws {
        func read() async throws(TokenStorageError) -> String? {
            do {
                return try await storage.retrieve(for: "key")
            } catch TokenStorageError.Code.locked {
                return "locked"
            }
        }
        #expect(try await read() == "locked")
    }

    @Test func anErrorOfAnyKindIsCaughtByItsCode() {
        func fail() throws { throw TokenStorageError(.wrongDevice, operation: "read", backend: "test") }
        var caught = false
        do { try fail() } catch TokenStorageError.Code.wrongDevice { caught = true } catch {}
        #expect(caught)
        #expect(!(TokenStorageError.Code.locked ~= CancellationError()))
    }

    @Test func aThrownErrorHasItsType() async {
        do {
            _ = try await storage.secret(for: "key")
            Issue.record("a locked storage answered")
        } catch {
            // The compiler knows the error's type, so there is no cast.
            #expect(error.code == .locked)
            #expect(error.operation == "secret")
            #expect(error.backend == "memory")
        }
    }

    @Test func aCodeIsSwitchedOver() {
        func advice(_ code: TokenStorageError.Code) -> String {
            switch code {
            case .locked, .notPermitted: "unlock"
            case .notFound: "create"
            default: "report"
            }
        }
        #expect(advice(.locked) == "unlock")
        #expect(advice(.corrupt) == "report")
    }

    @Test func everyCodeExplainsItself() {
        let codes = TokenStorageError.Code.allCases
        #expect(codes.count == 35)
        #expect(Set(codes.map(\.summary)).count == codes.count)
        for code in codes {
            #expect(TokenStorageError.Code(rawValue: code.rawValue) == code)
            #expect(!code.nextStep.isEmpty)
            let text = "\(TokenStorageError(code, operation: "verify", backend: "file"))"
            #expect(text == "verify: \(code.summary): \(code.nextStep)")
            #expect(!text.contains("\n"))
        }
        #expect(TokenStorageError.Code(rawValue: "no such code") == nil)
        let error = TokenStorageError(
            .ioFailure, operation: "store", backend: "file",
            reason: .other(explanation: "fdatasync: Input/output error", advice: "check the disk"))
        #expect(
            "\(error)"
                == "store: the system could not read or write (fdatasync: Input/output error): check the disk"
        )
    }
}
