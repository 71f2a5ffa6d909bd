import TokenVault

/// Keys, services and attributes as they are printed: they may have any characters.
enum PrintedName {
    /// `name` on one line: `\\n`, `\\r`, `\\t` and `\\u{1b}` stand for control characters and for what ends a line. A backslash stays
    /// as it is; JSON says which is which.
    static func line(_ name: String) -> String {
        var printed = ""
        for scalar in name.unicodeScalars {
            switch (scalar, scalar.properties.generalCategory) {
            case ("\n", _): printed += "\\n"
            case ("\r", _): printed += "\\r"
            case ("\t", _): printed += "\\t"
            case (_, .control), (_, .lineSeparator), (_, .paragraphSeparator):
                printed += "\\u{\(String(scalar.value, radix: 16))}"
            default: printed.unicodeScalars.append(scalar)
            }
        }
        return printed
    }

    /// The same for a screen, with a question mark for each other character that a terminal obeys or does not show.
    static func screen(_ name: String) -> String { CommandFailure.printable(line(name)) }
}
