import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault

/// The source of an export's passphrase.
struct ExportPassphraseOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The file whose first line is the passphrase of the export.", valueName: "path"),
        completion: .file())
    var exportPassphraseFile: String?

    var path: FilePath? {
        get throws(CommandFailure) {
            try Settings.path(exportPassphraseFile, named: "--export-passphrase-file", environment: nil)
        }
    }

    /// Returns the file that an argument names; `nil` for a stream.
    static func path(_ argument: String) throws(CommandFailure) -> FilePath? {
        guard !argument.isEmpty else { throw .usage("the file is empty", "give a path, or -") }
        return argument == "-" ? nil : try Settings.path(argument, named: "the file")
    }

    /// Reads the passphrase of a new export, or asks for it twice.
    static func readNew(_ path: FilePath?, _ console: Console) throws(CommandFailure) -> Secret {
        if let path { return try read(path, console) }
        if let secret = try console.askNewPassphrase("Passphrase of the export") { return secret }
        throw nobodyToAsk
    }

    /// Reads the passphrase of an existing export, or asks for it.
    static func readCurrent(_ path: FilePath?, _ console: Console) throws(CommandFailure) -> Secret {
        if let path { return try read(path, console) }
        if let secret = try console.askHidden("Passphrase of the export: "), !secret.isEmpty { return secret }
        throw nobodyToAsk
    }

    private static func read(_ path: FilePath, _ console: Console) throws(CommandFailure) -> Secret {
        let secret = try UnlockSource.readPassphraseFile(path, console)
        guard !secret.isEmpty else {
            throw .usage("the export's passphrase is empty", "its first line must be the passphrase")
        }
        return secret
    }

    private static let nobodyToAsk = CommandFailure(
        .refused, "there is no passphrase for the export", "give --export-passphrase-file")
}
