import ProgramSupport
import TokenVault

/// Formats keys, services and attributes for printing. Names may contain any character.
enum PrintedName {
    /// Returns `name` on one line. `\n`, `\r`, `\t` and `\u{1b}` stand for control characters and line ends.
    ///
    /// In a name with such a character, or with text that looks like an escape, `\\` stands for a backslash.
    /// So no two names are printed alike.
    static func line(_ name: String) -> String {
        guard mustEscape(name) else { return name }
        var printed = ""
        for scalar in name.unicodeScalars {
            switch scalar {
            case "\n": printed += "\\n"
            case "\r": printed += "\\r"
            case "\t": printed += "\\t"
            case "\\": printed += "\\\\"
            case _ where endsLineOrControls(scalar): printed += "\\u{\(String(scalar.value, radix: 16))}"
            default: printed.unicodeScalars.append(scalar)
            }
        }
        return printed
    }

    private static func mustEscape(_ name: String) -> Bool {
        let scalars = Array(name.unicodeScalars)
        return scalars.indices.contains { place in
            if endsLineOrControls(scalars[place]) { return true }
            guard place > 0, scalars[place - 1] == "\\" else { return false }
            let isBrace = place + 1 < scalars.count && scalars[place + 1] == "{"
            return ["n", "r", "t", "\\"].contains(scalars[place]) || scalars[place] == "u" && isBrace
        }
    }

    private static func endsLineOrControls(_ scalar: Unicode.Scalar) -> Bool {
        [.control, .lineSeparator, .paragraphSeparator].contains(scalar.properties.generalCategory)
    }

    /// Returns the same for a screen. A question mark replaces each other character that a terminal obeys or
    /// does not show.
    static func screen(_ name: String) -> String { CommandFailure.printable(line(name)) }
}
