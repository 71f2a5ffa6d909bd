package import SystemPackage

/// The secrets that systemd gave this program (`LoadCredential=`, `LoadCredentialEncrypted=`): files in a directory of its
/// own.
package enum ServiceCredentials {
    /// Where the credential `name` is, whether it is there or not; `nil` when no directory was given
    /// (`CREDENTIALS_DIRECTORY`), or the name is none that a credential can have.
    package static func path(of name: String) -> FilePath? {
        guard let directory = ProcessFacts.environment("CREDENTIALS_DIRECTORY").map({ FilePath($0) }),
            directory.isAbsolute, isName(name)
        else { return nil }
        return directory.appending(name)
    }

    /// Whether a credential can have that name: that of a file, without a colon.
    package static func isName(_ name: String) -> Bool {
        !name.isEmpty && name != "." && name != ".." && name.utf8.count <= 255
            && name.utf8.allSatisfy {
                0x20 < $0 && $0 < 0x7f && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: ":")
            }
    }
}
