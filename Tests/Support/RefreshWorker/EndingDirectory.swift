#if OAuth
import HookedStorage
import TokenVaultPlatform

/// A real directory in whose files a worker ends while it writes its new tokens.
final class EndingDirectory: ForwardingDirectory {
    let base: any DiskDirectory
    private let ending: Ending?

    init(base: any DiskDirectory, ending: Ending?) {
        self.base = base
        self.ending = ending
    }

    func open(_ name: String, _ access: FileAccess) throws(SystemFailure) -> any DiskFile {
        let file = try base.open(name, access)
        return ending.map { EndingFile(base: file, ending: $0) } ?? file
    }
}

private final class EndingFile: ForwardingFile {
    let base: any DiskFile
    private let ending: Ending

    init(base: any DiskFile, ending: Ending) {
        self.base = base
        self.ending = ending
    }

    func write(_ bytes: [UInt8], at offset: Int) throws(SystemFailure) {
        if ending.isReached("writing") {
            try base.write(Array(bytes.prefix(bytes.count / 2)), at: offset)
            ending.reach("writing")
        }
        try base.write(bytes, at: offset)
    }

    func synchronize() throws(SystemFailure) {
        if ending.isReached("synchronizing") { ending.reach("synchronizing") }
        try base.synchronize()
    }
}
#endif
