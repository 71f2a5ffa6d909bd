package import SystemPackage
internal import TokenVault
internal import TokenVaultPlatform

/// Where programs of this package look for the agent. Only programs ask: the library reads no environment.
package enum AgentPlaces {
    /// `tokenvault` in `$XDG_RUNTIME_DIR`, or in `/run/user/UID` when that is not set and the directory is this user's
    /// alone; without either `tokenvault-UID` in `/tmp`, which has to be this user's alone as well.
    package static var own: AgentPlace {
        AgentPlace(directory: UserDirectories.runtime?.appending("tokenvault") ?? shared)
    }

    /// A name that anybody can guess, in a directory in which anybody can take it first.
    private static var shared: FilePath { FilePath("/tmp/tokenvault-\(ProcessFacts.user)") }

    /// The agent's directory when somebody else has taken its name first: no agent of this user is there, and none can be.
    ///
    /// Only of the name in `/tmp`. Nobody else can take that from an agent that has it: who made it owns it, and `/tmp` lets
    /// no other user rename it or remove it. A place that was named is not passed by, whoever has it.
    package static var takenByAnother: FilePath? {
        guard UserDirectories.runtime == nil, SocketDirectory.isAnothers(shared) else { return nil }
        return shared
    }
}
