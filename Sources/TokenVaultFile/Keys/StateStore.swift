internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// A vault's state on this device, outside the vault: the device key and the passcode pepper.
struct StateStore: Sendable {
    let directory: any DiskDirectory
    let vault: VaultIdentifier

    private var deviceName: String { vault.hexadecimal + ".device" }
    private var pepperName: String { vault.hexadecimal + ".pepper" }
    private var placeName: String { vault.hexadecimal + Self.placeSuffix }
    private static let placeSuffix = ".path"

    /// Returns the existing secrets. A missing or damaged file gives no key: its items are then another
    /// device's. Throws `ioFailure` for a file that cannot be read, and `resourcesExhausted`: that must not pass for
    /// another device.
    func load() throws(TokenStorageError) -> KeybagKeys.DeviceSecrets {
        var secrets = KeybagKeys.DeviceSecrets()
        if var bytes = try read(deviceName, length: DeviceKey.encodedLength) {
            secrets.device = DeviceKey(decoding: bytes)
            SmallFile.wipe(&bytes)
        }
        if var bytes = try read(pepperName, length: SymmetricKey.length) {
            secrets.pepper = try? SymmetricKey(copying: SecretBytes(copying: bytes))
            SmallFile.wipe(&bytes)
        }
        return secrets
    }

    /// Makes this device's key. Only creation and enrolment call this: a missing file never makes one by
    /// itself.
    func makeDevice() throws(TokenStorageError) -> DeviceKey {
        let device: DeviceKey
        do { device = try DeviceKey.random() } catch { throw .crypto(error) }
        guard var bytes = device.encoded() else { throw .file(.internalError) }
        defer { SmallFile.wipe(&bytes) }
        try write(bytes, to: deviceName)
        return device
    }

    /// Returns this device's key: the existing one, or a new one where there is no valid file. A key that
    /// cannot be read is not replaced: throws the system's failure.
    func deviceOrNew() throws(TokenStorageError) -> DeviceKey {
        do {
            var bytes = try directory.open(deviceName, .read).read(DeviceKey.encodedLength, at: 0)
            defer { SmallFile.wipe(&bytes) }
            if bytes.count == DeviceKey.encodedLength, let device = DeviceKey(decoding: bytes) {
                return device
            }
        } catch {
            guard error.errno == .noSuchFileOrDirectory else {
                throw .file(.ioFailure, .deviceKeyUnreadable(.init(error)))
            }
        }
        try removeDevice()
        return try makeDevice()
    }

    /// Removes this device's key and pepper, durably.
    func removeDevice() throws(TokenStorageError) {
        for name in [pepperName, deviceName] { try remove(name) }
        try onDisk { () throws(SystemFailure) in try directory.synchronize() }
    }

    /// Makes the pepper that the passcode class is mixed with, in place of an old one.
    func makePepper() throws(TokenStorageError) -> SymmetricKey {
        let pepper: SymmetricKey
        do { pepper = try SymmetricKey.random() } catch { throw .crypto(error) }
        guard var bytes = SymmetricKey.concatenating([pepper])?.array() else { throw .file(.internalError) }
        defer { SmallFile.wipe(&bytes) }
        try removePepper()
        try write(bytes, to: pepperName)
        return pepper
    }

    /// Removes the pepper, durably: everything wrapped with it is lost.
    func removePepper() throws(TokenStorageError) {
        try remove(pepperName)
        try onDisk { () throws(SystemFailure) in try directory.synchronize() }
    }

    /// Remembers the vault's path, in place of the previous one, so that a copy of it at another path is
    /// recognised.
    func rememberPlace(_ path: FilePath) throws(TokenStorageError) {
        let (fresh, placeName, directory) = (placeName + ".new", placeName, directory)
        try remove(fresh)
        try onDisk { () throws(SystemFailure) in
            let file = try directory.open(fresh, .create)
            try file.write(path.bytes, at: 0)
            try file.synchronize()
            try directory.rename(fresh, to: placeName, replacing: true)
            try directory.synchronize()
        }
    }

    /// Forgets the vault's path, and nothing else.
    func forgetPlace() throws(TokenStorageError) {
        for name in [placeName + ".new", placeName] { try remove(name) }
        try onDisk { () throws(SystemFailure) in try directory.synchronize() }
    }

    /// Returns the vault's path, as far as it is known. Throws `resourcesExhausted` and `ioFailure` when the
    /// system could not even look.
    func place() throws(TokenStorageError) -> FilePath? {
        let (directory, placeName) = (directory, placeName)
        do {
            let bytes = try directory.open(placeName, .read).read(8_192, at: 0)
            return bytes.isEmpty || bytes.contains(0) ? nil : FilePath(bytes: bytes)
        } catch {
            if error.isExhaustion || error.errno == .ioError { throw .system(error) }
            return nil
        }
    }

    /// Returns whether `directory` remembers a vault at one of `paths`, which was neither destroyed nor
    /// forgotten.
    static func remembersVault(at paths: [FilePath], in directory: any DiskDirectory) -> Bool {
        !vaults(rememberedAt: paths, in: directory).isEmpty
    }

    /// Returns the vaults that `directory` remembers at one of `paths`, in the order of their identifiers. A
    /// vault whose making a crash cut short has no anchor, and does not count.
    static func vaults(
        rememberedAt paths: [FilePath], in directory: any DiskDirectory
    ) -> [VaultIdentifier] {
        guard let names = try? directory.names() else { return [] }
        return names.sorted().compactMap { name in
            guard name.hasSuffix(placeSuffix),
                let vault = VaultIdentifier(hexadecimal: String(name.dropLast(placeSuffix.utf8.count))),
                let file = try? directory.open(name, .read),
                let bytes = try? file.read(8_192, at: 0), !bytes.isEmpty, !bytes.contains(0),
                paths.contains(FilePath(bytes: bytes)),
                let anchor = try? directory.attributes(of: Anchor.name(of: vault)), anchor.size > 0
            else { return nil }
            return vault
        }
    }

    /// Removes this device's state for the vault. The keys go first, durably: whatever interrupts the rest,
    /// they are not left where nothing names the vault.
    func removeAll() throws(TokenStorageError) {
        for names in [[deviceName, pepperName], [placeName + ".new", placeName, Anchor.name(of: vault)]] {
            for name in names { try remove(name) }
            try onDisk { () throws(SystemFailure) in try directory.synchronize() }
        }
    }

    private func read(_ name: String, length: Int) throws(TokenStorageError) -> [UInt8]? {
        do {
            let bytes = try directory.open(name, .read).read(length, at: 0)
            return bytes.count == length ? bytes : nil
        } catch {
            if error.errno == .noSuchFileOrDirectory { return nil }
            if error.isExhaustion { throw .system(error) }
            throw .file(.ioFailure, .deviceKeyUnreadable(.init(error)))
        }
    }

    private func write(_ bytes: [UInt8], to name: String) throws(TokenStorageError) {
        try onDisk { () throws(SystemFailure) in
            let file = try directory.open(name, .create)
            try file.write(bytes, at: 0)
            try file.synchronize()
            try directory.synchronize()
        }
    }

    private func remove(_ name: String) throws(TokenStorageError) {
        do {
            try directory.remove(name)
        } catch {
            if error.errno != .noSuchFileOrDirectory { throw .system(error) }
        }
    }
}
