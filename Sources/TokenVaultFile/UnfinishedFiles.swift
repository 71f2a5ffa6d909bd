internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The files that programs left in a directory when they were stopped while making a vault or an export. They
/// exist on file systems where files have names before they are whole (``UnfinishedFile``).
struct UnfinishedFiles {
    /// The kind of an unfinished file.
    enum Kind {
        /// A vault of this name.
        case vault(String)
        /// An export.
        case export
    }

    /// The state of an unfinished file.
    enum State {
        /// A program writes the file, or the file is whole and has other names.
        case inUse
        /// The file is left over.
        case leftOver
        /// The file has such a name and is something else, or its state cannot be determined.
        case unknown
    }

    let directory: any DiskDirectory
    let kind: Kind

    /// Returns the name of an unfinished export. It does not contain the final name, which may be as long as
    /// a name can be.
    static func exportName(_ digits: String) -> String { ".export.\(digits)" }

    /// Removes leftover files, each while its lock is held: no program writes the file then, or will.
    func removeLeftOver() {
        for name in names {
            guard let file = try? directory.open(name, .readWrite), isOurs(file),
                (try? file.tryLock(.exclusive)) == true,
                let there = try? directory.attributes(of: name),
                there.identity == (try? file.attributes())?.identity
            else { continue }
            try? directory.remove(name)
        }
    }

    /// Returns the files, in the order of their names, with their states.
    func found() -> [(name: String, state: State)] {
        names.sorted().map { name in
            // A file with another name is whole.
            if let there = try? directory.attributes(of: name), there.links > 1 { return (name, .inUse) }
            guard let file = try? directory.open(name, .read), isOurs(file),
                let isFree = try? file.tryLock(.shared)
            else { return (name, .unknown) }
            return (name, isFree ? .leftOver : .inUse)
        }
    }

    private var names: [String] {
        ((try? directory.names()) ?? []).filter { name in
            switch kind {
            case .vault(let vault): return ConflictCopies.isUnfinished(name, of: vault)
            case .export:
                let digits = name.dropFirst(Self.exportName("").count)
                return name.hasPrefix(Self.exportName("")) && digits.utf8.count == 16
                    && digits.allSatisfy(\.isHexDigit)
            }
        }
    }

    /// Returns whether `file` is one that this package began: empty, or with the beginning of such a file.
    private func isOurs(_ file: any DiskFile) -> Bool {
        guard let attributes = try? file.attributes(), attributes.kind == .regular,
            attributes.owner == ProcessFacts.user, attributes.links == 1,
            let front = try? file.read(8, at: 0)
        else { return false }
        if isAllZero(front) { return true }
        switch kind {
        case .vault: return front == Keybag.magic
        case .export: return front == ExportHeader.magic
        }
    }

    /// Returns the text in ``VaultStatus/notes`` about these files in a vault's directory.
    static func notes(beside location: VaultLocation) -> [String] {
        let (vaults, exports) = (
            UnfinishedFiles(directory: location.directory, kind: .vault(location.name)).found(),
            UnfinishedFiles(directory: location.directory, kind: .export).found()
        )
        return vaults.compactMap { note($0, remover: "\"vaultctl compact\" removes it") }
            + exports.compactMap { note($0, remover: "the next export into this directory removes it") }
    }

    private static func note(_ found: (name: String, state: State), remover: String) -> String? {
        switch found.state {
        case .inUse: nil
        case .leftOver: "\(found.name) was left by a program that was stopped: \(remover)"
        case .unknown:
            "\(found.name) is named like the leftover of a stopped program, but may be another file: remove it "
                + "if you do not need it"
        }
    }
}
