package import SystemPackage

/// The directories for this user's files, by the XDG Base Directory Specification: an absolute path from the
/// environment, or the default below the home directory.
package enum UserDirectories {
    /// `$XDG_DATA_HOME`, or `~/.local/share`; `nil` when there is no home directory.
    package static var data: FilePath? { directory("XDG_DATA_HOME", ".local/share") }
    /// `$XDG_STATE_HOME`, or `~/.local/state`; `nil` when there is no home directory.
    package static var state: FilePath? { directory("XDG_STATE_HOME", ".local/state") }

    /// `$XDG_RUNTIME_DIR`. When it is not set, the directory that logind makes (pam_systemd(8)), if it is for
    /// this user alone. `nil` without either.
    package static var runtime: FilePath? {
        if let named = absolute("XDG_RUNTIME_DIR") { return named }
        return SocketDirectory.isOurs(usualRuntime) ? usualRuntime : nil
    }

    /// The path where logind makes the runtime directory, whether it exists or not.
    package static var usualRuntime: FilePath { FilePath("/run/user/\(ProcessFacts.user)") }

    /// `$HOME`, or the home directory in the user database.
    static var home: FilePath? {
        absolute("HOME") ?? ProcessFacts.homeFromUserDatabase.flatMap { $0.isAbsolute ? $0 : nil }
    }

    private static func directory(_ variable: String, _ usual: FilePath) -> FilePath? {
        absolute(variable) ?? home?.pushing(usual)
    }

    /// Returns `nil` for a relative path, which the specification requires to be ignored.
    private static func absolute(_ variable: String) -> FilePath? {
        ProgramContext.path(variable).flatMap { $0.isAbsolute ? $0 : nil }
    }
}
