import ProgramSupport
import TokenVault

/// A vault that no passphrase opens. The list of slots shows that without any key.
struct UnattendedVault {
    private let hasKeyFile: Bool
    private let hasKeyring: Bool

    /// Returns `nil` for a vault that a passphrase or a recovery key opens.
    init?(_ slots: [VaultSlot]) {
        guard !slots.isEmpty, !slots.contains(where: \.kind.isAttended) else { return nil }
        hasKeyFile = slots.contains { $0.kind == .keyFile }
        hasKeyring = slots.contains { $0.kind == .secretService }
    }

    /// The failure that names the unlock methods of the vault, in place of a passphrase prompt.
    var locked: CommandFailure { CommandFailure(.locked, "locked, and \(fact)", advice) }

    /// Returns the failure of a passphrase with a note that no passphrase opens the vault, which may be the
    /// cause.
    func telling(_ failure: CommandFailure) -> CommandFailure {
        guard failure.cause?.code == .wrongPassphrase else { return failure }
        var told = failure
        told.happened += " (\(fact))"
        told.advice = advice
        return told
    }

    private var fact: String {
        switch (hasKeyFile, hasKeyring) {
        case (true, false): "the vault opens with a key file, not with a passphrase"
        case (true, true): "the vault opens with a key file or the login keyring, not with a passphrase"
        case (false, _): "the vault opens with the login keyring, not with a passphrase"
        }
    }

    private var advice: String {
        switch (hasKeyFile, hasKeyring) {
        case (true, false): "give --key-file FILE"
        case (true, true): "give --key-file FILE, or unlock the login keyring"
        case (false, _): "unlock the login keyring and try again"
        }
    }
}
