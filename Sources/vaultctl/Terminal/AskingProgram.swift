import ProgramSupport
import SystemPackage
import TokenVaultPlatform

/// A program that asks a person for a secret in a window: an askpass, as ssh(1) has it, or pinentry.
enum AskingProgram: Equatable {
    case askpass(FilePath)
    case pinentry(FilePath)

    /// What came of asking.
    enum Answer {
        /// What was entered. The caller wipes it.
        case bytes([UInt8])
        /// The person did not want to.
        case cancelled
    }

    /// Which one to ask; `nil` when there is none, or the terminal is to be asked.
    ///
    /// As in ssh(1): only where there is a `DISPLAY` or `WAYLAND_DISPLAY`, and no terminal; by `SSH_ASKPASS_REQUIRE` before
    /// the terminal (`prefer`), in any case (`force`), or not at all (`never`). `TOKENVAULT_ASKPASS` goes before
    /// `SSH_ASKPASS`. Where neither is set, there is no terminal and `PATH` has a pinentry, that.
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

    /// What the program is, for errors.
    var name: String {
        switch self {
        case .askpass(let path): "the askpass program \(path)"
        case .pinentry: "pinentry"
        }
    }

    /// Asks for a secret of at most `limit` bytes, saying which vault it is for. Throws what the system failed with: `EFBIG`, `ETIMEDOUT` when `deadline`
    /// passes.
    func ask(
        _ prompt: String, for vault: String?, limit: Int, deadline: Deadline?
    ) throws(SystemFailure) -> Answer {
        // A path that somebody else chose shall not look like a line of ours.
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

    /// What a program needs to show a window, and nothing else: whatever secrets the environment has are not for it.
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
