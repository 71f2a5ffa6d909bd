internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The files that programs left in a directory when they were stopped while they made a vault or an export, on file
/// systems where these have names before they are whole (``UnfinishedFile``).
struct UnfinishedFiles {
    /// Of what.
    enum Kind {
        /// Of a vault of this name.
        case vault(String)
        /// Of an export.
        case export
    }

    /// Why one is there.
    enum State {
        /// Somebody writes it, or it is whole and has other names.
        case inUse
        /// It is left over.
        case leftOver
        /// It has such a name and is something else, or nobody can tell.
        case unknown
    }

    let directory: any DiskDirectory
    let kind: Kind

    /// The name of an export that is not whole. Not made from the one that it is to have, which may be as long as a
    /// name can be.
    static func exportName(_ digits: String) -> String { ".export.\(digits)" }

    /// Removes those that are left over, each while its lock is held: nobody writes it then, nor will.
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

    /// Those that are there, in the order of their names, and why.
    func found() -> [(name: String, state: State)] {
        names.sorted().map { name in
            // By another name it is a file that is whole.
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

    /// Whether `file` is what a program of ours began: nothing, or what such a file begins with.
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

    /// What ``VaultStatus/notes`` says of those in a vault's directory.
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
        case .leftOver: "\(found.name) is left of a program that was stopped: \(remover)"
        case .unknown:
            "\(found.name) has the name of what a program leaves that was stopped, and may be something else: remove it "
                + "if nobody needs it"
        }
    }
}
