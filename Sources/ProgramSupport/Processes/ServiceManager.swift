internal import CLinux
internal import Glibc
internal import SystemPackage
package import TokenVaultPlatform

/// The service manager that started this program, if it expects notices (`sd_notify(3)`).
package enum ServiceManager {
    /// A notice to the service manager.
    package enum Notice: String, Sendable {
        /// The program serves clients.
        case ready = "READY=1"
        /// The program is about to end.
        case stopping = "STOPPING=1"
    }

    /// Sends a notice to the datagram socket that `NOTIFY_SOCKET` names: a path, or an abstract name with `@`
    /// in front. Does nothing without that variable. Throws system errors, and `EAFNOSUPPORT` for another
    /// kind of address.
    package static func tell(_ notice: Notice) throws(SystemFailure) {
        guard let address = ProcessFacts.environment("NOTIFY_SOCKET") else { return }
        _ = try retrying("sendto") { clinux_notify(address, notice.rawValue) }
    }
}
