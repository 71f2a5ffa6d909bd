import TokenVaultCrypto

/// The files of a disk's directories: what is there after a crash.
struct DiskContents: Sendable, Equatable {
    var directories: [[String: [UInt8]]]

    /// A digest that tells two contents apart.
    var digest: [UInt8] {
        var text: [UInt8] = []
        for (index, files) in directories.enumerated() {
            for name in files.keys.sorted() {
                text.append(UInt8(index))
                text.append(contentsOf: Array(name.utf8))
                text.append(0)
                text.append(contentsOf: Hash.digest(files[name] ?? [], length: 16))
            }
        }
        return Hash.digest(text, length: 16)
    }
}
