package import SystemPackage
internal import TokenVaultPlatform

/// The secrets that systemd passed to this program (`LoadCredential=`, `LoadCredentialEncrypted=`): files in
/// a directory of their own.
package enum ServiceCredentials {
    /// Returns the path of the credential `name`, whether it exists or not. Returns `nil` when there is no
    /// credential directory (`CREDENTIALS_DIRECTORY`), or the name is invalid for a credential.
    package static func path(of name: String) -> FilePath? {
        guard let directory = ProcessFacts.environment("CREDENTIALS_DIRECTORY").map({ FilePath($0) }),
            directory.isAbsolute, isName(name)
        else { return nil }
        return directory.appending(name)
    }

    /// Returns whether a credential can have that name: a file name without a colon.
    package static func isName(_ name: String) -> Bool {
        !name.isEmpty && name != "." && name != ".." && name.utf8.count <= 255
            && name.utf8.allSatisfy {
                0x20 < $0 && $0 < 0x7f && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: ":")
            }
    }
}
