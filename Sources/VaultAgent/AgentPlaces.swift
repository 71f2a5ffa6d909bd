internal import SystemPackage
internal import TokenVault
internal import TokenVaultPlatform

/// Where programs of this package look for the agent. Only programs ask: the library reads no environment.
package enum AgentPlaces {
    /// `tokenvault` in `$XDG_RUNTIME_DIR`; without that, `tokenvault-UID` in `/tmp`, which has to be this user's alone as
    /// well.
    package static var own: AgentPlace {
        if let runtime = UserDirectories.runtime {
            return AgentPlace(directory: runtime.appending("tokenvault"))
        }
        return AgentPlace(directory: FilePath("/tmp/tokenvault-\(ProcessFacts.user)"))
    }
}
