import HookedStorage
import SystemPackage
import TokenVaultPlatform

/// A directory in which no name takes another's place, as where a file is mounted.
final class FixedDirectory: ForwardingDirectory {
    let base: any DiskDirectory
    private let refusal: Errno

    init(base: any DiskDirectory, refusal: Errno) {
        self.base = base
        self.refusal = refusal
    }

    func rename(_ name: String, to target: String, replacing: Bool) throws(SystemFailure) {
        throw SystemFailure(refusal, "renameat")
    }
}
