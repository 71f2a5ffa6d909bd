package import SystemPackage

extension FilePath {
    /// The path as a word of a shell's command: unchanged, or in single quotes.
    package var shellWord: String {
        let plain = string.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
                || Array("/._-+,:@%".utf8).contains(byte) || byte >= 0x80
        }
        if plain, !string.isEmpty { return string }
        return "'"
            + string.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#) + "'"
    }
}
