internal import CLinux
internal import Glibc
internal import SystemPackage

/// The service manager that started this program, if it is told of its state (`sd_notify(3)`).
package enum ServiceManager {
    /// What it is told.
    package enum Notice: String, Sendable {
        /// The program serves clients.
        case ready = "READY=1"
        /// It is about to end.
        case stopping = "STOPPING=1"
    }

    /// Tells it, at the datagram socket that `NOTIFY_SOCKET` names: a path, or with `@` in front an abstract name. Nothing
    /// happens without that variable. Throws what the system failed with, and `EAFNOSUPPORT` for an address of another
    /// kind.
    package static func tell(_ notice: Notice) throws(SystemFailure) {
        guard let address = ProcessFacts.environment("NOTIFY_SOCKET") else { return }
        _ = try retrying("sendto") { clinux_notify(address, notice.rawValue) }
    }
}
