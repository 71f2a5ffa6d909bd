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
            "the item may belong to another state directory: check HOME, XDG_STATE_HOME and --state-dir; if they are "
                + "right, \(foreign)"
        case .systemCall(let call)
        where [Errno.permissionDenied, .notDirectory].contains(Errno(rawValue: call.errorNumber)):
            "check --vault, and the modes of the file and its directories"
        case .damagedCopy:
            "\"vaultctl verify --vault COPY\" says where, \"vaultctl salvage NEW --vault COPY\" copies out the intact data"
        case .damaged(.bothKeybags):
            "\"vaultctl salvage\" can help if the two are damaged in different places; otherwise \"vaultctl restore\" puts "
                + "a backup in the vault's place"
        case .noVault, .noDirectory: "create the vault with \"vaultctl init\", or check --vault and HOME"
        case .forkedBeyondMemory: advice(for: .forked)
        case .ancestry(.tooManyLeft):
            "run \"vaultctl merge\" with the two files on the device that stored these items"
        case .permission(.everything), .permission(.item), .permission(.passcodeItems), .permission(.storing):
            advice(for: .notPermitted)
        default: nil
        }
    }

    /// Advice for an item that another device stored.
    private static let foreign =
        "read or share it on that device (\"vaultctl set KEY --policy when-unlocked\"); here, use another key, or delete "
        + "that device's items with \"vaultctl device remove\""

    /// Returns advice about `vaultctl` commands, where it is better than the library's.
    static func advice(for code: TokenStorageError.Code) -> String? {
        switch code.kind {
        case .locked: "run \"vaultctl unlock\", or give --passphrase-file or --key-file"
        case .wrongDevice: foreign
        case .notPermitted:
            "give --passphrase-file, or a key file whose slot opens everything (\"vaultctl slot list\"); only a passphrase "
                + "opens when-passcode-set items"
        case .notFound:
            "\"vaultctl list\" shows the keys of the service (--service, else VAULTCTL_SERVICE, else \"default\"), and with "
                + "--all-services all keys"
        case .slotNotFound: "\"vaultctl slot list\" shows their numbers"
        case .lastSlot: "add another one first, with \"vaultctl slot add\""
        case .tooManySlots: "remove one first, with \"vaultctl slot remove\""
        case .conflict: "\"vaultctl info\" shows the generation it has now"
        case .corrupt:
            "\"vaultctl verify\" says where, \"vaultctl salvage\" copies out the intact data, \"vaultctl restore\" puts "
                + "a backup in its place"
        case .rolledBack:
            "\"vaultctl merge FILE\" takes the changes of the newest copy into this one; to go on without "
                + "them, run \"vaultctl restore\" with this one"
        case .forked:
            "\"vaultctl merge FILE\" takes them from the previous file, a conflict copy or a backup; "
                + "\"vaultctl adopt\" goes on without them"
        case .unexpectedVault:
            "put the expected vault back, or accept this one with \"vaultctl adopt\"; \"vaultctl destroy --forget\" gives up "
                + "the other and its this-device-only items"
        case .duplicateVault:
            "use the other, or make this one the vault with \"vaultctl adopt\"; \"vaultctl export\" reads either, without "
                + "this-device-only items"
        case .unavailable: "create a vault with \"vaultctl init\", or check --vault"
        case .notAVault: "check --vault, or put a backup there with \"vaultctl restore\""
        case .insecurePermissions: "make it yours, with mode 0600 (chmod 600)"
        case .invalidArgument: "see \"vaultctl help\" for the values of the options"
        case .outcomeUnknown: "compare it with the generation that \"vaultctl info\" shows"
        case .timedOut: "try again, with a longer --timeout if need be"
        case .unsupportedPolicy: "choose another --policy"
        default: nil
        }
    }
}
