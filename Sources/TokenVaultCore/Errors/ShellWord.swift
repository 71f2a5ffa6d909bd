import SystemPackage

extension String {
    /// The text as one word of a shell command: in single quotes, unless each of its characters stands for itself.
    package var shellWord: String {
        let plain = utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
                || Array("/._-+,:@%".utf8).contains(byte) || byte >= 0x80
        }
        if plain, !isEmpty { return self }
        return "'" + split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#) + "'"
    }
}

extension FilePath {
    /// The path as one word of a shell command.
    package var shellWord: String { string.shellWord }
}
