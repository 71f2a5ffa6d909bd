internal import SystemPackage
package import TokenVault
package import TokenVaultPlatform

/// The failure that ends a command: an exit status and one line on standard error.
///
/// The line says what happened and what to do. The line never repeats an argument's value, because a secret
/// typed in the wrong place must not end up in a log.
package struct CommandFailure: Error, Equatable {
    package var status: ExitStatus
    package var happened: String
    package var advice: String
    /// Whether the command may have done its work despite the failure.
    package var mayBeDone = false
    /// The library error that caused the failure; `nil` for another reason.
    package var cause: TokenStorageError?

    package init(_ status: ExitStatus, _ happened: String, _ advice: String) {
        self.status = status
        self.happened = happened
        self.advice = advice
    }

    /// Returns the failure for a mistake on the command line.
    package static func usage(_ happened: String, _ advice: String) -> CommandFailure {
        CommandFailure(.usage, happened, advice)
    }

    /// Creates the failure of a system call on `subject`.
    package init(_ failure: SystemFailure, _ subject: String, _ advice: String) {
        if failure.errno == .timedOut {
            self.init(.timedOut, "timed out waiting for \(subject)", "try again with a longer --timeout")
        } else {
            self.init(.failure, "\(subject): \(failure.errno.description)", advice)
        }
    }

    /// Returns the failure of a write to standard output.
    package static func output(_ failure: SystemFailure) -> CommandFailure {
        CommandFailure(failure, "standard output", "check where it goes to")
    }

    /// The line, without control characters, because advice can name paths.
    package var line: String { Self.printable("vaultctl: \(happened): \(advice)") }

    /// Returns `text` with a question mark for each character that a terminal obeys or does not show.
    ///
    /// Those are control characters, zero-width characters, tags, and characters that change the direction of
    /// the text.
    package static func printable(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { isObeyedOrHidden($0) ? "?" : $0 }))
    }

    private static func isObeyedOrHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default:
            // Variation selectors draw emoji, so they stay. U+2800 looks blank, but its category is symbol.
            scalar.value == 0x2800
                || scalar.properties.isDefaultIgnorableCodePoint && !(0xfe0e...0xfe0f).contains(scalar.value)
        }
    }
}
