import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

/// The first line of a passphrase file or descriptor, without the line's end: a newline, with or without a
/// carriage return.
struct PassphraseLine {
    /// The passphrase.
    let passphrase: Secret
    /// The passphrase with the carriage return that ended its line; `nil` without a carriage return.
    private let withCarriageReturn: Secret?
    /// Whether the passphrase begins or ends with a space or tab.
    private let isPadded: Bool

    /// Reads the first line of the file or pipe at `path`.
    init(_ path: FilePath, _ console: Console) throws(CommandFailure) {
        let input: InputSource
        do { input = try .file(path) } catch {
            throw CommandFailure(error, path.told(as: "the passphrase file"), "check its path and mode")
        }
        if input.isReadableByOthers {
            console.note("other users can read the passphrase file: run chmod 600 on it")
        }
        try self.init(input, console)
    }

    /// Reads the first line of `input`.
    init(_ input: InputSource, _ console: Console) throws(CommandFailure) {
        var bytes: [UInt8]
        do throws(SystemFailure) {
            bytes = try input.readLine(limit: Secret.maximumLength, deadline: console.deadline)
        } catch {
            throw CommandFailure(error, "the passphrase", "its first line must be the passphrase")
        }
        defer { SmallFile.wipe(&bytes) }
        try Self.requireBareText(bytes)
        if bytes.last == UInt8(ascii: "\r") {
            withCarriageReturn = Secret(bytes)
            bytes.removeLast()
        } else {
            withCarriageReturn = nil
        }
        let blanks = [UInt8(ascii: " "), UInt8(ascii: "\t")]
        isPadded = [bytes.first, bytes.last].contains { $0.map(blanks.contains) ?? false }
        passphrase = Secret(bytes)
    }

    /// Gives `body` the passphrase. If the passphrase is wrong, tries it with its carriage return, which
    /// earlier versions included. The failure mentions blanks that may be the cause.
    func open<Result>(
        _ body: (UnlockMethod) throws(CommandFailure) -> Result
    ) throws(CommandFailure) -> Result {
        do throws(CommandFailure) { return try body(.passphrase(passphrase)) } catch {
            guard error.cause?.code == .wrongPassphrase else { throw error }
            if let withCarriageReturn {
                do throws(CommandFailure) { return try body(.passphrase(withCarriageReturn)) } catch {
                    throw explained(error)
                }
            }
            throw explained(error)
        }
    }

    private func explained(_ error: CommandFailure) -> CommandFailure {
        guard isPadded, error.cause?.code == .wrongPassphrase else { return error }
        var error = error
        error.happened += "; the passphrase line begins or ends with a blank"
        return error
    }

    /// Throws for bytes that an editor adds and a keyboard cannot type. A user could not type such a
    /// passphrase.
    private static func requireBareText(_ bytes: [UInt8]) throws(CommandFailure) {
        if bytes.starts(with: [0xef, 0xbb, 0xbf]) {
            throw CommandFailure(
                .failure, "the passphrase begins with a byte order mark", "save the file as UTF-8 without one"
            )
        }
        if bytes.contains(0) || bytes.starts(with: [0xff, 0xfe]) || bytes.starts(with: [0xfe, 0xff]) {
            throw CommandFailure(
                .failure, "the passphrase is UTF-16, or has zero bytes", "save the file as UTF-8")
        }
    }
}
