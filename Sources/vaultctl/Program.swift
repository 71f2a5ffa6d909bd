import ArgumentParser
import ProgramSupport
import TokenVaultPlatform

/// The program: arguments in, status out.
struct Program {
    let console = Console()

    /// Runs what `arguments` ask for; `nil` stands for arguments that are not UTF-8.
    func run(_ arguments: [String]?) -> ExitStatus {
        do throws(CommandFailure) {
            guard let arguments else {
                throw CommandFailure.usage("an argument is not UTF-8", "write it in UTF-8")
            }
            defer { console.endSilence() }
            let status = try perform(arguments)
            console.progress.clear()
            try console.output.finish()
            return status
        } catch {
            // What a command had printed before it failed was asked for; that it could not be printed
            // matters less than why the command failed.
            try? console.output.finish()
            console.say(error.told(passingOver: console.variablePassedOver).line)
            return error.status
        }
    }

    private func perform(_ arguments: [String]) throws(CommandFailure) -> ExitStatus {
        if let retrieve = FastRetrieve.parse(arguments) {
            return try Retrieve.execute(retrieve, console)
        }
        if let token = FastToken.parse(arguments) {
            return try Token.execute(token, console)
        }
        switch try CommandLineParser.parse(arguments) {
        case .command(let command): return try command.execute(console)
        case .text(let text):
            console.output.line(text)
            return .done
        case .helpWanted(let text):
            console.say(text)
            return .usage
        }
    }
}

/// A command: what ArgumentParser fills in, and what is then done.
protocol VaultCommand: ParsableCommand {
    /// Does it. Throws what went wrong; otherwise says how to end.
    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus
}
