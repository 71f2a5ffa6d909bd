import ArgumentParser
import ProgramSupport
import TokenVault

struct Device: ParsableCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Show and change the devices that the vault has keys for.",
            description: """
                An item of a this-device-only policy belongs to the device that stored it. A copy of the vault on another \
                device keeps such items unchanged. After "vaultctl device enrol", that device can store such items of its own.
                """,
            examples: [
                "vaultctl device list",
                "vaultctl device enrol",
                "vaultctl device remove 0123456789abcdef0123456789abcdef",
            ],
            standard: .group),
        subcommands: [DeviceList.self, DeviceEnrol.self, DeviceRemove.self])
}

struct DeviceList: VaultCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        page: CommandPage(
            abstract: "Print the devices.",
            description: """
                A line has the identifier of a device, the time of its enrolment, and whether it is this device. The command \
                needs no unlock. With an unlock method, the line also has the number of the device's items.
                """,
            examples: [
                "vaultctl device list",
                "vaultctl device list --key-file ~/.config/example/vault.key --json",
            ],
            statuses: [.locked: nil],
            standard: .vault))

    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let vault = try session.openVault()
        if !session.unlock.isTerminal {
            let slots = try session.slots(of: vault)
            try session.unlock.withUnlockMethod(console, opening: slots) { (method) throws(CommandFailure) in
                try session.unlock(vault, with: method)
            }
        }
        let devices = try calling { () throws(TokenStorageError) in try vault.devices() }
        if let note = vault.keybagNote { console.note(note) }
        if format.json {
            var json = JSONWriter(console.output)
            json.array { json in
                for device in devices { json.device(device) }
            }
            json.end()
        } else {
            for device in devices {
                var line = "\(device.id)\t\(Timestamp.text(device.enrolled))"
                line += device.isThisDevice ? "\tthis device" : "\tanother device"
                if let items = device.items { line += "\t\(items)" }
                console.output.line(line)
            }
        }
        return .done
    }
}

struct DeviceEnrol: VaultCommand {
    static let configuration = CommandConfiguration(
        commandName: "enrol",
        page: CommandPage(
            abstract: "Give this device keys of its own in the vault.",
            description: """
                Enrol a device that a vault was copied to, or whose device key is lost. From then on, this device can store items of \
                the this-device-only policies. Items of other devices do not change. For when-passcode-set-this-device-only, \
                unlock the vault with a passphrase.

                The device key is created in the state directory. Leave that directory out of backups and copies of the vault. \
                The command prints the identifier of the device. \(UnlockOptions.opensFile)
                """,
            examples: [
                "vaultctl device enrol",
                "vaultctl device enrol --passphrase-file passphrase.txt --json",
            ],
            statuses: [
                .failure: "The vault has seven devices already, or another failure.",
                .refused: "The passphrase or key is wrong, or does not open everything.",
                .unavailable:
                    "The vault is not available, or the state directory does not outlast a restart of the machine.",
                .conflict: "This device is enrolled already, or the same vault is at two paths.",
            ],
            standard: .vault))

    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        try session.requireFile()
        if try session.stateIsPassing(besideVault: try session.vaultPath) {
            throw CommandFailure(
                .unavailable,
                "the state directory does not outlast a restart, and this device's items would be lost",
                "give --state-dir with one that lasts")
        }
        let vault = try session.openUnlockedVault()
        let device = try calling { () throws(TokenStorageError) in try vault.enrolDevice() }
        if format.json {
            var json = JSONWriter(console.output)
            json.device(device)
            json.end()
        } else {
            console.output.line(device.id)
        }
        return .done
    }
}

struct DeviceRemove: VaultCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        page: CommandPage(
            abstract: "Remove a device from the vault, with its items.",
            description: """
                Remove a device that is lost or no longer used. No other device can open the items of such a device, so the command removes \
                these too, for good. The command counts the items and prompts first, unless --yes is given.

                An old copy of the vault still opens on that device. After a theft, also run "vaultctl passphrase --revoke", and \
                replace the secrets. \(UnlockOptions.opensFile)
                """,
            examples: [
                "vaultctl device list",
                "vaultctl device remove 0123456789abcdef0123456789abcdef",
                "vaultctl device remove 0123456789abcdef0123456789abcdef --yes",
            ],
            statuses: [
                .notFound: "No device has this identifier.",
                .refused:
                    "The passphrase or key is wrong or does not open everything, or the removal was not confirmed.",
                .conflict: "The same vault is at two paths, or another program changed its keys meanwhile.",
            ],
            standard: .vault))

    @Argument(help: "The device's identifier.") var id: String
    @Flag(help: "Do not prompt for a confirmation.") var yes = false
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let vault = try session.openUnlockedVault()
        let devices = try calling { () throws(TokenStorageError) in try vault.devices() }
        guard let device = devices.first(where: { $0.id == id }) else {
            throw CommandFailure(
                .notFound, "there is no such device", "\"vaultctl device list\" shows their identifiers")
        }
        let items = device.items == 1 ? "its 1 item" : "its \(device.items ?? 0) items"
        if !yes {
            let which = device.isThisDevice ? "this device" : "the device"
            try console.confirm("Remove the keys of \(which) and \(items), for good?")
        }
        let removed = try calling { () throws(TokenStorageError) in try vault.removeDevice(device.id) }
        console.note(removed == 1 ? "1 item is removed with it" : "\(removed) items are removed with it")
        if !device.isThisDevice {
            console.note(
                "a copy of the vault on that device still opens: if the device is lost, run \"vaultctl passphrase --revoke\" "
                    + "and replace the secrets")
        }
        return .done
    }
}

extension JSONWriter {
    /// Writes a device.
    fileprivate mutating func device(_ device: VaultDevice) {
        object { json in
            json.member("id", device.id)
            json.member("enrolled", Timestamp.text(device.enrolled))
            json.member("thisDevice", device.isThisDevice)
            json.member("items", device.items)
        }
    }
}
