import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

/// The input and output of a command.
final class Console {
    /// Standard output, for requested output only.
    let output = Output()
    /// Whether prompts are allowed, which `--no-input` forbids.
    var mayAsk = true
    /// The path of the vault, for the prompt in a window.
    var vault: String?
    /// The deadline of `--timeout`.
    var deadline: Deadline?
    /// The keyring that may hold the vault's key.
    lazy var keyring: any KeyringItems = SecretServiceVaultKeys(
        SystemKeyring.service(mayAsk: mayAsk, timeout: keyringTimeout, collection: collection))
    /// The label of the keyring that new items go to; `nil` for the default one.
    var collection: String?
    /// The timeout of keyring calls, if one was given.
    var keyringTimeout: Duration?
    /// Whether the user's session has a keyring, locked or not.
    var hasKeyring: () -> Bool = { SystemKeyring.isThere }

    /// Whether nothing is written to standard error, as while a shell completes a word.
    var isSilent = false

    /// Writes one line to standard error.
    func say(_ line: String) {
        guard !isSilent else { return }
        progress.clear()
        try? StandardStream.error.write(Array((line + "\n").utf8))
    }

    /// Writes a note, which is no failure, to standard error.
    func note(_ text: String) { say(CommandFailure.printable("vaultctl: note: \(text)")) }

    /// Prints the provider's error text.
    func noteErrorText(_ text: String) { note("the provider says: \(text)") }

    /// Opens the file of a secret, and notes when other users can read it. `name` is the file's role. Throws the
    /// errors of ``InputSource/file(_:)``.
    func secretFile(_ path: FilePath, _ name: String) throws(SystemFailure) -> InputSource {
        let input = try InputSource.file(path)
        if input.isReadableByOthers { note("other users can read \(name): run chmod 600 on it") }
        return input
    }

    /// Writes a line only if standard error is a terminal, so never to a log.
    func remark(_ text: String) {
        if StandardStream.error.isTerminal { say(CommandFailure.printable(text)) }
    }

    /// The progress of long work.
    let progress = ProgressLine()

    /// Shows that work has begun. Each call of the result shows the progress.
    func begin(_ work: String) -> (_ done: Int, _ total: Int) -> Void {
        progress.show("\(work) …")
        return { [progress] in progress.show(work, $0, of: $1) }
    }

    /// The terminal for prompts; `nil` without a terminal or with `--no-input`.
    private var terminal: Terminal? { mayAsk ? Terminal() : nil }

    /// Whether there is a terminal to prompt on.
    var canAsk: Bool { terminal != nil }

    /// Whether secrets are asked for at the terminal rather than in a window.
    var asksAtTerminal: Bool { canAsk && AskingProgram.find(hasTerminal: true) == nil }

    /// Whether the user can be asked for a secret, at the terminal or in a window.
    var canAskForSecrets: Bool { canAsk || mayAsk && AskingProgram.find(hasTerminal: false) != nil }

    /// Keeps the terminal's echo off after a hidden answer.
    private var silence: TerminalSilence?

    /// Turns the terminal's echo on again. Discards input typed meanwhile.
    func endSilence() {
        silence?.end()
        silence = nil
    }

    /// Whether the command asks the agent for the vault. Only then an open vault in the agent is of use.
    var asksAgent = false

    /// The environment variable that names an unlock method, but is ignored because the agent holds the
    /// vault.
    var variablePassedOver: String?

    /// Asks for a hidden secret, and keeps the echo off until ``endSilence()``. `nil` when no prompt is
    /// possible.
    func askHidden(_ prompt: String) throws(CommandFailure) -> Secret? {
        let terminal = terminal
        progress.clear()
        if mayAsk, let program = AskingProgram.find(hasTerminal: terminal != nil) {
            return try ask(program, prompt)
        }
        guard let terminal else { return nil }
        let answer: Terminal.Answer
        do {
            answer = try terminal.askHidden(
                prompt, limit: Secret.maximumLength, deadline: deadline, silence: &silence)
        } catch {
            if error.errno == .fileTooLarge { throw CommandFailure(TokenStorageError.tooLarge) }
            throw CommandFailure(error, "the terminal", "give the secret or passphrase another way")
        }
        switch answer {
        case .bytes(var bytes):
            defer { SmallFile.wipe(&bytes) }
            return Secret(bytes)
        case .cancelled: throw .nothingEntered
        case .severalLines: throw .severalLines
        }
    }

    /// Asks through a program, in a window.
    private func ask(_ program: AskingProgram, _ prompt: String) throws(CommandFailure) -> Secret {
        let answer: AskingProgram.Answer
        do {
            answer = try program.ask(
                prompt, for: vault, limit: Secret.maximumLength, deadline: deadline)
        } catch {
            if error.errno == .fileTooLarge { throw CommandFailure(TokenStorageError.tooLarge) }
            throw CommandFailure(
                error, program.name,
                "give the secret or passphrase another way, or set SSH_ASKPASS_REQUIRE=never")
        }
        switch answer {
        case .bytes(var bytes):
            defer { SmallFile.wipe(&bytes) }
            return Secret(bytes)
        case .cancelled: throw .nothingEntered
        }
    }

    /// Asks for a new passphrase, twice. `nil` when no prompt is possible.
    func askNewPassphrase(_ prompt: String) throws(CommandFailure) -> Secret? {
        for _ in 1...3 {
            guard let first = try askHidden("\(prompt): ") else { return nil }
            if first.isEmpty {
                say("An empty passphrase protects nothing.")
                continue
            }
            guard let second = try askHidden("The same again: ") else { return nil }
            if first == second { return first }
            say("The two are not the same.")
        }
        throw CommandFailure(.failure, "no new passphrase was given", "nothing was changed; try again")
    }

    /// Asks for a "yes" before an action that cannot be undone.
    func confirm(_ question: String) throws(CommandFailure) {
        guard let terminal else {
            let marks: Set<Character> = [".", "?"]
            let asked = question.last.map(marks.contains) ?? false ? String(question.dropLast()) : question
            throw CommandFailure(.refused, "not confirmed (\(asked))", "give --yes if you mean it")
        }
        endSilence()
        let question = CommandFailure.printable(question)
        let answer: String?
        do {
            answer = try terminal.ask("\(question) Type yes to go on: ", deadline: deadline)
        } catch {
            throw CommandFailure(error, "the terminal", "give --yes if you mean it")
        }
        guard answer == "yes" else {
            throw CommandFailure(.refused, "not confirmed", "nothing was changed")
        }
    }

    /// Shows a secret on the terminal, between a title and advice, and waits for the return key.
    func showOnce(_ title: String, _ secret: Secret, _ advice: String) throws(CommandFailure) {
        guard let terminal else { return }
        progress.clear()
        endSilence()
        terminal.show("\n    \(title)")
        secret.withBytes { terminal.show($0) }
        terminal.show("\n\n\(advice)\n")
        do {
            _ = try terminal.ask("Press return when you have it: ", deadline: deadline)
        } catch {
            throw CommandFailure(error, "the terminal", "the recovery key opens the vault all the same")
        }
    }

    /// Asks the question and returns whether the answer is "yes". Returns false without a terminal.
    func offer(_ question: String) throws(CommandFailure) -> Bool {
        guard let terminal else { return false }
        endSilence()
        do {
            let answer = try terminal.ask("\(question) Type yes to do so: ", deadline: deadline)
            return answer.map { ["y", "yes"].contains($0.lowercased()) } ?? false
        } catch {
            throw CommandFailure(
                error, "the terminal", "run the command without a terminal, or with --no-input")
        }
    }
}

extension CommandFailure {
    static let nothingEntered = CommandFailure(
        .failure, "nothing was entered", "nothing was changed")

    fileprivate static let severalLines = CommandFailure(
        .failure, "several lines were pasted at the prompt", "nothing was stored; pipe it in, or use a file")
}

extension TokenStorageError {
    static let tooLarge = TokenStorageError(.tooLarge, operation: "store", backend: "vaultctl")
}
