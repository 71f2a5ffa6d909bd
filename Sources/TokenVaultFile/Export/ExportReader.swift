internal import SystemPackage
internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// Reads an export file. Nothing of a file counts before ``readItems(_:)`` has reached its end once.
struct ExportReader {
    private let file: any DiskFile
    private let header: ExportHeader
    private let front: [UInt8]
    private let keys: ExportKeys

    /// Reads the front of `file`. Throws `corrupt` when the file is no export, `unsupportedFormat` when a
    /// newer program wrote it, and `wrongPassphrase`. Throws `timedOut` and `resourcesExhausted` when its
    /// cost is not within `limit`.
    init(_ file: any DiskFile, passphrase: Secret, within limit: DerivationLimit = .none)
        throws(TokenStorageError)
    {
        self.file = file
        front = try onDisk { () throws(SystemFailure) in try file.read(ExportHeader.length, at: 0) }
        do throws(FormatError) {
            header = try ExportHeader(decoding: front)
        } catch {
            if error == .newerVersion {
                throw .file(.unsupportedFormat, .newerFormat(.export))
            }
            // The contents of a pipe are seen only here.
            guard front.first != UInt8(ascii: "{") else {
                throw .file(.corrupt, .damaged(.linesOfJSON))
            }
            throw Self.damage(.notAnExport)
        }
        keys = try Self.keys(passphrase, header, within: limit)
    }

    /// Returns the keys that the passphrase gives, in the form of new exports or as it was given.
    private static func keys(
        _ passphrase: Secret, _ header: ExportHeader, within limit: DerivationLimit
    ) throws(TokenStorageError) -> ExportKeys {
        for spelling in passphrase.spellings {
            let keys = try ExportKeys(
                passphrase: spelling, salt: header.salt, cost: header.cost, within: limit)
            if constantTimeEqual(keys.commitment, header.commitment) { return keys }
        }
        throw .file(.wrongPassphrase, .slots(.passphraseOfExport))
    }

    /// Reads every item, in the order of the file, each as soon as it is authentic. Throws `corrupt` when
    /// anything was changed, left out, moved, cut off or added, by the end of the file at the latest.
    func readItems(
        _ body: (TokenItem) throws(TokenStorageError) -> Void
    ) throws(TokenStorageError) {
        let stream: SecretStream.Opener
        do {
            stream = try SecretStream.Opener(key: keys.stream, header: header.stream)
        } catch {
            throw .crypto(error)
        }
        var offset = ExportHeader.length
        var count: UInt64 = 0
        while true {
            let sealed = try message(at: offset)
            offset += 4 + sealed.count
            guard let (plaintext, isLast) = stream.open(sealed, associatedData: front),
                let message = try? ExportMessage(decoding: plaintext)
            else { throw Self.damage(.damagedItem, offset) }
            switch message {
            case .item(let policy, let metadata, let secret):
                guard !isLast, let policy = AccessPolicy(number: policy), !policy.isThisDeviceOnly,
                    let stored = try? ItemCoding.decodeMetadata(metadata, policy: policy, generation: 0),
                    let secret = try? ItemCoding.decodeBody(secret)
                else { throw Self.damage(.unreadableItem, offset) }
                count += 1
                var metadata = stored.metadata
                metadata.isPolicyFromLimitedSession =
                    policy.isReadableAfterFirstUnlock && stored.policyProof == nil
                try body(TokenItem(metadata: metadata, secret: secret))
            case .end(let items):
                guard isLast, items == count, try isEnd(offset) else {
                    throw Self.damage(.unexpectedEnd, offset)
                }
                return
            }
        }
    }

    private func message(at offset: Int) throws(TokenStorageError) -> [UInt8] {
        let file = file
        let prefix = try onDisk { () throws(SystemFailure) in try file.read(4, at: offset) }
        var reader = ByteReader(prefix)
        guard let length = try? reader.integer(UInt32.self), Int(length) <= ExportMessage.longest else {
            throw Self.damage(.cutOffOrDamaged, offset)
        }
        let sealed = try onDisk { () throws(SystemFailure) in try file.read(Int(length), at: offset + 4) }
        guard sealed.count == Int(length) else { throw Self.damage(.cutOff, offset) }
        return sealed
    }

    private func isEnd(_ offset: Int) throws(TokenStorageError) -> Bool {
        let file = file
        return try onDisk { () throws(SystemFailure) in try file.read(1, at: offset) }.isEmpty
    }

    private static func damage(
        _ damage: TokenStorageError.Reason.ExportDamage, _ offset: Int? = nil
    ) -> TokenStorageError {
        .file(.corrupt, .damagedExport(damage, offset: offset))
    }
}
