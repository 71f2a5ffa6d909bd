import ProgramSupport
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
        case .noVault, .noDirectory: "\"vaultctl init\" creates the vault; else check --vault and HOME"
        case .permission(.everything), .permission(.item), .permission(.passcodeItems), .permission(.storing):
            advice(for: .notPermitted)
        default: nil
        }
    }

    /// Advice for an item that another device stored.
    private static let foreign =
        "read it on the device that stored it; here, use another key, or \"vaultctl device remove\" that device, "
        + "with all that only it may read"

    /// Returns advice about `vaultctl` commands, where it is better than the library's.
    static func advice(for code: TokenStorageError.Code) -> String? {
        switch code.kind {
        case .locked: "\"vaultctl unlock\" it, or give --passphrase-file or --key-file"
        case .wrongDevice: foreign
        case .notPermitted:
            "\"vaultctl unlock --passphrase-file …\", or with another slot that leads to it; an item that a key file alone is to read takes "
                + "\"vaultctl set KEY --policy after-first-unlock-this-device-only\""
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
            "put the newest copy back; if this is the one to go on with, \"vaultctl restore\" it, on purpose"
        case .forked:
            "\"vaultctl merge COPY\" takes what a copy has into the vault; \"vaultctl adopt\" makes this file the vault as "
                + "it is"
        case .unexpectedVault:
            "put the expected vault back; \"vaultctl adopt\" takes this one, \"vaultctl destroy --forget\" forgets the other"
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
