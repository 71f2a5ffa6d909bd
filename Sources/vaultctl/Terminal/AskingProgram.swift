import ProgramSupport
import SystemPackage
import TokenVaultPlatform

/// A program that asks the user for a secret in a window: an askpass program (ssh(1)) or pinentry.
enum AskingProgram: Equatable {
    case askpass(FilePath)
    case pinentry(FilePath)

    /// The result of a prompt.
    enum Answer {
        /// The typed bytes. The caller wipes them.
        case bytes([UInt8])
        /// The user cancelled the prompt.
        case cancelled
    }

    /// Returns the program to ask; `nil` when there is none, or when the terminal is to be used.
    ///
    /// As in ssh(1), a program is used only with a `DISPLAY` or `WAYLAND_DISPLAY` and without a terminal.
    /// `SSH_ASKPASS_REQUIRE` changes that: before the terminal (`prefer`), in any case (`force`), or not at
    /// all (`never`).
    ///
    /// `TOKENVAULT_ASKPASS` takes precedence over `SSH_ASKPASS`. If neither is set, a pinentry in `PATH` is
    /// used, but only without a terminal.
    static func find(hasTerminal: Bool) -> AskingProgram? {
        let requirement = ProcessFacts.environment("SSH_ASKPASS_REQUIRE")?.lowercased()
        let isForced = requirement == "force"
        let hasDisplay = ["DISPLAY", "WAYLAND_DISPLAY"].contains { ProcessFacts.environment($0) != nil }
        guard requirement != "never", hasDisplay || isForced,
            !hasTerminal || isForced || requirement == "prefer"
        else { return nil }
        if let name = ["TOKENVAULT_ASKPASS", "SSH_ASKPASS"].lazy.compactMap(ProcessFacts.environment).first {
            return .askpass(HelperProgram.find(name) ?? FilePath(name))
        }
        guard hasDisplay, !hasTerminal else { return nil }
        return HelperProgram.find("pinentry").map { .pinentry($0) }
    }

    /// The program's name for errors.
    var name: String {
        switch self {
        case .askpass(let path): "the askpass program \(path)"
        case .pinentry: "pinentry"
        }
    }

    /// Asks for a secret of at most `limit` bytes. The prompt names the vault. Throws the failure of the
    /// system: `EFBIG`, or `ETIMEDOUT` when `deadline` passes.
    func ask(
        _ prompt: String, for vault: String?, limit: Int, deadline: Deadline?
    ) throws(SystemFailure) -> Answer {
        // A path chosen by another user must not look like a line of this program.
        let subject = vault.map { CommandFailure.printable($0) }
        switch self {
        case .askpass(let program):
            let question = subject.map { "vaultctl, for \($0): \(prompt)" } ?? "vaultctl: \(prompt)"
            let helper = try HelperProgram(
                program, [question], environment: Self.environment, isSpokenTo: false)
            var line = try helper.readLine(limit: limit, deadline: deadline) ?? []
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            do throws(SystemFailure) {
                if try helper.finish(deadline: deadline) == 0 { return .bytes(line) }
            } catch {
                SmallFile.wipe(&line)
                throw error
            }
            SmallFile.wipe(&line)
            return .cancelled
        case .pinentry(let program):
            let helper = try HelperProgram(program, [], environment: Self.environment, isSpokenTo: true)
            let conversation = try Pinentry(helper, deadline: deadline)
            let answer = try conversation.ask(
                "vaultctl needs this for \(subject.map { "the vault \($0)" } ?? "a vault of yours").",
                prompt: prompt, limit: limit)
            conversation.leave()
            return answer.map { .bytes($0) } ?? .cancelled
        }
    }

    /// The variables that a program needs to show a window, and no others. The environment may contain
    /// secrets that are not for the program.
    private static var environment: [String] {
        let names = [
            "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE",
            "LC_MESSAGES", "DISPLAY",
            "XAUTHORITY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR",
            "XDG_SESSION_TYPE",
            "XDG_CURRENT_DESKTOP", "XDG_CONFIG_DIRS", "XDG_DATA_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
            "GTK_THEME",
            "QT_QPA_PLATFORM", "QT_QPA_PLATFORMTHEME", "PINENTRY_USER_DATA",
        ]
        return names.compactMap { name in ProcessFacts.environment(name).map { "\(name)=\($0)" } }
    }
}
