import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

/// Everything a command says to people and asks of them.
final class Console {
    /// Standard output: only what was asked for.
    let output = Output()
    /// Whether `--no-input` forbids asking.
    var mayAsk = true
    /// The vault that secrets are asked for, as a window says it.
    var vault: String?
    /// When `--timeout` is over.
    var deadline: Deadline?
    /// The keyring that may hold the vault's key.
    lazy var keyring: any KeyringItems = SecretServiceVaultKeys(
        SystemKeyring.service(mayAsk: mayAsk, timeout: keyringTimeout, collection: collection))
    /// The label of the keyring that new items go to; `nil` for the default one.
    var collection: String?
    /// How long calls of the keyring may take, when that was given.
    var keyringTimeout: Duration?
    /// Whether the person's session has a keyring, locked or not.
    var hasKeyring: () -> Bool = { SystemKeyring.isThere }

    /// Says one line on standard error.
    func say(_ line: String) {
        progress.clear()
        try? StandardStream.error.write(Array((line + "\n").utf8))
    }

    /// Says something that is worth knowing but no failure.
    func note(_ text: String) { say(CommandFailure.printable("vaultctl: note: \(text)")) }

    /// Says something to a person only, not to a log.
    func remark(_ text: String) {
        if StandardStream.error.isTerminal { say(CommandFailure.printable(text)) }
    }

    /// The progress of long work.
    let progress = ProgressLine()

    /// Shows that something has begun, and how far it has come each time the result is called.
    func begin(_ work: String) -> (_ done: Int, _ total: Int) -> Void {
        progress.show("\(work) …")
        return { [progress] in progress.show(work, $0, of: $1) }
    }

    /// The terminal to ask on; `nil` when there is none, or `--no-input` was given.
    private var terminal: Terminal? { mayAsk ? Terminal() : nil }

    /// Whether there is somebody to ask at a terminal.
    var canAsk: Bool { terminal != nil }

    /// Whether secrets are asked for at a terminal, and not in a window.
    var asksAtTerminal: Bool { canAsk && AskingProgram.find(hasTerminal: true) == nil }

    /// Whether there is somebody to ask for a secret, there or in a window.
    var canAskForSecrets: Bool { canAsk || mayAsk && AskingProgram.find(hasTerminal: false) != nil }

    /// Keeps the terminal from showing what is typed, after an answer that was not shown.
    private var silence: TerminalSilence?

    /// Has the terminal show again what is typed. What was typed meanwhile is thrown away.
    func endSilence() {
        silence?.end()
        silence = nil
    }

    /// Whether the agent was asked for the vault: only then it is of use here that the agent has it open.
    var asksAgent = false

    /// The variable of the environment that names what opens the vault, and does not count since the agent holds it.
    var variablePassedOver: String?

    /// Asks for a secret that is not shown, and goes on showing nothing until ``endSilence()``. `nil` when nobody can be asked.
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

    /// Has a program ask, in a window.
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

    /// Asks for a new passphrase, twice. `nil` when nobody can be asked.
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

    /// Asks for a "yes" before something that cannot be undone.
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

    /// Shows a secret on the terminal, between a title and what to do with it, and waits for the return key.
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

    /// Offers something; whether the answer is "yes". Nobody to ask is a no.
    func offer(_ question: String) throws(CommandFailure) -> Bool {
        guard let terminal else { return false }
        endSilence()
        do {
            let answer = try terminal.ask("\(question) Type yes to do so: ", deadline: deadline)
            return answer.map { ["y", "yes"].contains($0.lowercased()) } ?? false
        } catch {
            throw CommandFailure(error, "the terminal", "run it without one, or with --no-input")
        }
    }
}

extension CommandFailure {
    fileprivate static let nothingEntered = CommandFailure(
        .failure, "nothing was entered", "nothing was changed")

    fileprivate static let severalLines = CommandFailure(
        .failure, "several lines were pasted at the prompt", "nothing was stored; pipe it in, or use a file")
}

extension TokenStorageError {
    static let tooLarge = TokenStorageError(.tooLarge, operation: "store", backend: "vaultctl")
}
