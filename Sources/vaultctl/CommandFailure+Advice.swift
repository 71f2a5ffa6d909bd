import ProgramSupport
import SystemPackage
import TokenVault

// The only place that turns a library reason or code into advice about `vaultctl` commands.
extension CommandFailure {
    /// Returns advice for a reason whose library advice is for programs.
    static func advice(for reason: TokenStorageError.Reason?) -> String? {
        switch reason {
        case .agentDirectoryClosed: AgentStarter.closedAdvice
        case .readOnly(.requested): "leave --read-only out"
        case .deviceKeyMissing(path: _?):
            "the state directory may not be the one it was stored with: check HOME, XDG_STATE_HOME, --state-dir; if it "
                + "is, \(foreign)"
        case .systemCall(let call)
        where [Errno.permissionDenied, .notDirectory].contains(Errno(rawValue: call.errorNumber)):
            "check --vault, and who may read the file and enter its directories"
        case .damagedCopy:
            "\"vaultctl verify --vault COPY\" says where, \"vaultctl salvage NEW --vault COPY\" copies out what is whole"
        case .damaged(.bothKeybags):
            "\"vaultctl salvage\" can help where the two are damaged in different places; else \"vaultctl restore\" puts a "
                + "backup in its place"
        case .noVault, .noDirectory: "\"vaultctl init\" creates the vault; else check --vault and HOME"
        case .forkedBeyondMemory: advice(for: .forked)
        case .ancestry(.tooManyLeft):
            "\"vaultctl merge\" the two files on the device that stored these items"
        case .permission(.everything), .permission(.item), .permission(.passcodeItems), .permission(.storing):
            advice(for: .notPermitted)
        default: nil
        }
    }

    /// Advice for an item that another device stored.
    private static let foreign =
        "read it on the device that stored it, where \"vaultctl set KEY --policy when-unlocked\" shares it; here, use another "
        + "key, or \"vaultctl device remove\" that device, with all that only it may read"

    /// Returns advice about `vaultctl` commands, where it is better than the library's.
    static func advice(for code: TokenStorageError.Code) -> String? {
        switch code.kind {
        case .locked: "\"vaultctl unlock\" it, or give --passphrase-file or --key-file"
        case .wrongDevice: foreign
        case .notPermitted:
            "\"vaultctl unlock --passphrase-file …\", or \"vaultctl slot list\" for another method; only a passphrase opens "
                + "when-passcode-set items"
        case .notFound:
            "\"vaultctl list\" shows the keys of this service, which is the one of --service, else VAULTCTL_SERVICE, else "
                + "\"default\"; with --all-services those of every one"
        case .slotNotFound: "\"vaultctl slot list\" shows their numbers"
        case .lastSlot: "add another one first, with \"vaultctl slot add\""
        case .tooManySlots: "remove one first, with \"vaultctl slot remove\""
        case .conflict: "\"vaultctl info\" shows the generation it has now"
        case .corrupt:
            "\"vaultctl verify\" says where, \"vaultctl salvage\" copies out what is whole, \"vaultctl restore\" puts "
                + "a backup in its place"
        case .rolledBack:
            "\"vaultctl merge FILE\" takes the newest copy into this one, which may have changes of its own; to go on without "
                + "it, \"vaultctl restore\" this one"
        case .forked:
            "\"vaultctl merge FILE\" takes in those of the file that this device used before, a conflict copy or a backup; "
                + "\"vaultctl adopt\" does without them"
        case .unexpectedVault:
            "put the expected vault back, or take this one with \"vaultctl adopt\"; \"vaultctl destroy --forget\" gives the "
                + "other up, with all that only this device can read"
        case .duplicateVault:
            "use the other, or make this one the vault with \"vaultctl adopt\"; \"vaultctl export\" reads what may leave "
                + "the device from either"
        case .unavailable: "create a vault with \"vaultctl init\", or check --vault"
        case .notAVault: "check --vault; a backup is put there with \"vaultctl restore\""
        case .insecurePermissions: "make it yours, with mode 0600 (chmod 600)"
        case .invalidArgument: "see \"vaultctl help\" for what the options take"
        case .outcomeUnknown: "compare it with the generation that \"vaultctl info\" shows"
        case .timedOut: "try again, with a longer --timeout if need be"
        case .unsupportedPolicy: "choose another --policy"
        default: nil
        }
    }
}
