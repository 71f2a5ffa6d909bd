package import SystemPackage

/// Where this user's files belong, by the XDG Base Directory Specification: an absolute path from the
/// environment, or the default below the home directory.
package enum UserDirectories {
    /// `$XDG_DATA_HOME`, or `~/.local/share`; `nil` when there is no home directory.
    package static var data: FilePath? { directory("XDG_DATA_HOME", ".local/share") }
    /// `$XDG_STATE_HOME`, or `~/.local/state`; `nil` when there is no home directory.
    package static var state: FilePath? { directory("XDG_STATE_HOME", ".local/state") }

    /// `$XDG_RUNTIME_DIR`; when it is not set, where logind makes it (pam_systemd(8)), if that is this user's alone. `nil`
    /// without either.
    package static var runtime: FilePath? {
        if let named = absolute("XDG_RUNTIME_DIR") { return named }
        return SocketDirectory.isOurs(usualRuntime) ? usualRuntime : nil
    }

    /// Where logind makes the runtime directory, whether it is there or not.
    package static var usualRuntime: FilePath { FilePath("/run/user/\(ProcessFacts.user)") }

    /// `$HOME`, or what the user database says.
    static var home: FilePath? {
        absolute("HOME") ?? ProcessFacts.homeFromUserDatabase.flatMap { $0.isAbsolute ? $0 : nil }
    }

    private static func directory(_ variable: String, _ usual: FilePath) -> FilePath? {
        absolute(variable) ?? home?.pushing(usual)
    }

    /// The specification wants a relative path ignored.
    private static func absolute(_ variable: String) -> FilePath? {
        ProgramContext.path(variable).flatMap { $0.isAbsolute ? $0 : nil }
    }
}
