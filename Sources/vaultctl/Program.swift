import ArgumentParser
import ProgramSupport
import TokenVaultPlatform

/// The program: arguments in, status out.
struct Program {
    let console = Console()

    /// Runs the command in `arguments`; `nil` stands for arguments that are not UTF-8.
    func run(_ arguments: [String]?) -> ExitStatus {
        do throws(CommandFailure) {
            guard let arguments else {
                throw CommandFailure.usage("an argument is not UTF-8", "write it in UTF-8")
            }
            defer { console.endSilence() }
            let status: ExitStatus
            if let retrieve = FastRetrieve.parse(arguments) {
                status = try Retrieve.execute(retrieve, console)
            } else if let token = FastToken.parse(arguments) {
                status = try Token.execute(token, console)
            } else {
                status = try execute(arguments)
            }
            console.progress.clear()
            try console.output.finish()
            return status
        } catch {
            // The output before the failure was requested, so it is still written. A failure to write it
            // matters less than the command's failure.
            try? console.output.finish()
            console.say(error.told(passingOver: console.variablePassedOver).line)
            return error.status
        }
    }

    private func execute(_ arguments: [String]) throws(CommandFailure) -> ExitStatus {
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

/// A command: arguments that ArgumentParser fills in, and the work.
protocol VaultCommand: ParsableCommand {
    /// Runs the command and returns the exit status. Throws the failure.
    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus
}
