import ArgumentParser
import ProgramSupport
import TokenVault

struct Device: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show and change the devices that the vault has keys for.",
        discussion: """
            Items of a this-device-only policy belong to the device that stored them. A copy of the vault on \
            another device carries them untouched; once that is enrolled, it can store such items of its own.

            Examples:
              vaultctl device list
              vaultctl device enrol
              vaultctl device remove 0123456789abcdef0123456789abcdef
            """,
        subcommands: [DeviceList.self, DeviceEnrol.self, DeviceRemove.self])
}

struct DeviceList: VaultCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Print the devices.",
        discussion: """
            One a line: its identifier, when it was enrolled, and whether it is this one. Needs no unlocking; \
            with an unlock method it also prints how many items each has.

            Examples:
              vaultctl device list
              vaultctl device list --key-file ~/.config/example/vault.key --json
            """)

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
        abstract: "Give this device keys of its own in the vault.",
        discussion: """
            For a vault that was copied here, or whose device key is lost. From then on items of the \
            this-device-only policies can be stored here; those of other devices stay theirs. The device key is \
            made in the state directory: leave that out of backups. Prints the device's identifier. \
            \(UnlockOptions.opensFile)

            Examples:
              vaultctl device enrol
            """)

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
        abstract: "Take a device's keys and items out of the vault.",
        discussion: """
            For a device that is lost or no longer used. Its items cannot be opened by any other and are \
            removed: they are counted and asked about, unless --yes is given. An old copy of the vault still \
            opens on that device; after a theft use "vaultctl passphrase --revoke" as well. \
            \(UnlockOptions.opensFile)

            Examples:
              vaultctl device list
              vaultctl device remove 0123456789abcdef0123456789abcdef
            """)

    @Argument(help: "The device's identifier.") var id: String
    @Flag(help: "Do not ask.") var yes = false
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
