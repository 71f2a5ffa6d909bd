internal import SystemPackage
package import TokenVault
package import TokenVaultPlatform

/// Why a command ends without having done its work: the status and the one line on standard error.
///
/// The line says what happened and what to do. It never repeats an argument's value: a secret typed in
/// the wrong place must not end up in a log.
package struct CommandFailure: Error, Equatable {
    package var status: ExitStatus
    package var happened: String
    package var advice: String
    /// Whether the command's work may have been done all the same.
    package var mayBeDone = false
    /// The error of the library behind it; `nil` for another reason.
    package var cause: TokenStorageError?

    package init(_ status: ExitStatus, _ happened: String, _ advice: String) {
        self.status = status
        self.happened = happened
        self.advice = advice
    }

    /// A mistake on the command line.
    package static func usage(_ happened: String, _ advice: String) -> CommandFailure {
        CommandFailure(.usage, happened, advice)
    }

    /// A system call failed on `subject`.
    package init(_ failure: SystemFailure, _ subject: String, _ advice: String) {
        if failure.errno == .timedOut {
            self.init(.timedOut, "timed out waiting for \(subject)", "try again with a longer --timeout")
        } else {
            self.init(.failure, "\(subject): \(failure.errno.description)", advice)
        }
    }

    /// Standard output did not take what was written to it.
    package static func output(_ failure: SystemFailure) -> CommandFailure {
        CommandFailure(failure, "standard output", "check where it goes to")
    }

    /// The line, without control characters: advice can name paths.
    package var line: String { Self.printable("vaultctl: \(happened): \(advice)") }

    /// `text` with a question mark for each character that a terminal obeys or does not show: control characters, those
    /// that turn the direction of the text around them, zero-width characters and tags.
    package static func printable(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { isObeyedOrHidden($0) ? "?" : $0 }))
    }

    private static func isObeyedOrHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default:
            // How emoji are drawn; and a blank that is a symbol by its category.
            scalar.value == 0x2800
                || scalar.properties.isDefaultIgnorableCodePoint && !(0xfe0e...0xfe0f).contains(scalar.value)
        }
    }
}
