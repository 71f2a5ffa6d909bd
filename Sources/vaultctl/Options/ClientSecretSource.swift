import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

/// The source of a client's secret. The initializer secures a descriptor before an opened file could get its
/// number.
enum ClientSecretSource {
    case none
    case file(FilePath)
    case input(InputSource)

    init(file: String?, descriptor: String?) throws(CommandFailure) {
        guard file == nil || descriptor == nil else {
            throw .usage(
                "the client's secret was given twice",
                "give one of --client-secret-file and --client-secret-fd")
        }
        if let path = try Settings.path(file, named: "--client-secret-file", environment: nil) {
            self = .file(path)
        } else if let descriptor {
            let number: Int32 = try Settings.number(descriptor, named: "--client-secret-fd", 0...1_048_576)
            do throws(SystemFailure) {
                self = .input(number == 0 ? .standard : try .inherited(number))
            } catch {
                throw CommandFailure(
                    error, "the secret's descriptor", "check the descriptor that the caller passes")
            }
        } else {
            self = .none
        }
    }

    /// Whether no source was given.
    var isNone: Bool { if case .none = self { true } else { false } }

    /// Reads the first line; `nil` when no source was given.
    func read(_ console: Console) throws(CommandFailure) -> Secret? {
        let input: InputSource
        switch self {
        case .none: return nil
        case .input(let given): input = given
        case .file(let path):
            do throws(SystemFailure) {
                input = try console.secretFile(path, "the client's secret file")
            } catch {
                throw CommandFailure(error, "the client's secret file", "check its path and mode")
            }
        }
        let secret: Secret
        do throws(SystemFailure) {
            var bytes = try input.readLine(limit: 4_096, deadline: console.deadline)
            defer { SmallFile.wipe(&bytes) }
            secret = Secret(bytes)
        } catch {
            throw CommandFailure(error, "the client's secret", "its first line must be the secret")
        }
        guard secret.unprotectedText() != nil, !secret.isEmpty else {
            throw .usage("the client's secret is empty or no text", "its first line must be the secret")
        }
        return secret
    }
}
