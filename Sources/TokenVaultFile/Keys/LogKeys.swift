internal import TokenVaultCrypto

/// The keys of the log, which every slot opens: they authenticate frames and find items, and read none.
final class LogKeys: Sendable {
    let header: SymmetricKey
    let control: SymmetricKey
    let chain: SymmetricKey
    let lookup: SymmetricKey
    let service: SymmetricKey
    let anchor: SymmetricKey
    let index: SymmetricKey

    init(logKey: SymmetricKey) throws(CryptoError) {
        header = try Hash.derive(from: logKey, label: "tokenvault 1 frame header")
        control = try Hash.derive(from: logKey, label: "tokenvault 1 control record")
        chain = try Hash.derive(from: logKey, label: "tokenvault 1 chain")
        lookup = try Hash.derive(from: logKey, label: "tokenvault 1 lookup")
        service = try Hash.derive(from: logKey, label: "tokenvault 1 service")
        anchor = try Hash.derive(from: logKey, label: "tokenvault 1 anchor")
        index = try Hash.derive(from: logKey, label: "tokenvault 1 index")
    }

    func wipe() { for key in [header, control, chain, lookup, service, anchor, index] { key.wipe() } }
}
