#if OAuth
internal import NIOCore
internal import SystemPackage
internal import TokenVaultPlatform

/// The owner of a connection on the loopback, as the kernel names it.
///
/// Any user of the machine can connect to a loopback port. The kernel knows the user of each end.
enum LoopbackPeer {
    /// Whether the socket at the other end of `channel` belongs to the user of the listener. False when the kernel
    /// does not show it.
    static func isOfSameUser(_ channel: any Channel) -> Bool {
        guard let port = channel.remoteAddress?.port, let local = channel.localAddress,
            let listener = local.port
        else { return false }
        let isIPv6 = local.protocol == .inet6
        return isOfSameUserByQuestion(port, as: listener, isIPv6: isIPv6)
            ?? isOfSameUserByTable(port, as: listener, isIPv6: isIPv6)
    }

    /// The same by a question for each end; `nil` where the kernel answers no questions, as in some containers.
    static func isOfSameUserByQuestion(_ port: Int, as listener: Int, isIPv6: Bool) -> Bool? {
        let (port, listener) = (UInt16(clamping: port), UInt16(clamping: listener))
        guard let own = SocketOwner.user(of: listener, connectedTo: port, isIPv6: isIPv6) else { return nil }
        return SocketOwner.user(of: port, connectedTo: listener, isIPv6: isIPv6) == own
    }

    /// The same by the tables of sockets (`proc_net_tcp`).
    static func isOfSameUserByTable(_ port: Int, as listener: Int, isIPv6: Bool) -> Bool {
        isOfSameUser(
            port, as: listener, isIPv6: isIPv6,
            among: ["/proc/net/tcp", "/proc/net/tcp6"].flatMap { entries(of: $0, naming: listener) })
    }

    /// Whether the socket at `port` that is connected to `listener` belongs to the listener's user. Only open
    /// sockets count: the kernel lists a closed one under root.
    static func isOfSameUser(
        _ port: Int, as listener: Int, isIPv6: Bool, among sockets: [Entry]
    ) -> Bool {
        let sockets = sockets.filter { $0.isIPv6 == isIPv6 }
        let own = sockets.first { $0.state == listening && $0.port == listener }
        let others = sockets.filter {
            $0.state == established && $0.port == port && $0.remotePort == listener
        }
        return own != nil && !others.isEmpty && others.allSatisfy { $0.user == own?.user }
    }

    /// One socket of the table whose local end is on the loopback.
    struct Entry: Equatable {
        /// Whether the address is ::1.
        let isIPv6: Bool
        let port: Int
        let remotePort: Int
        let state: Substring
        let user: Substring
    }

    private static let established: Substring = "01"
    private static let listening: Substring = "0A"
    // 127.0.0.1 as the kernel prints it, the same address of a socket of IPv6, and ::1.
    private static let loopback: [Substring: Bool] = [
        "0100007F": false, "0000000000000000FFFF00000100007F": false,
        "00000000000000000000000001000000": true,
    ]

    /// Returns the entry in a line of the table; `nil` for the heading and for other addresses.
    static func entry(_ line: Substring) -> Entry? {
        let fields = line.split(separator: " ", maxSplits: 8)
        guard fields.count > 8, let (local, port) = end(fields[1]), let (_, remotePort) = end(fields[2]),
            let isIPv6 = loopback[local]
        else { return nil }
        return Entry(isIPv6: isIPv6, port: port, remotePort: remotePort, state: fields[3], user: fields[7])
    }

    private static func end(_ text: Substring) -> (address: Substring, port: Int)? {
        let parts = text.split(separator: ":")
        guard parts.count == 2, let port = Int(parts[1], radix: 16) else { return nil }
        return (parts[0], port)
    }

    /// Returns the entries of the table at `path` with the port `listener` at either end. The table of a busy machine has
    /// thousands of lines, so the other lines are not parsed.
    private static func entries(of path: FilePath, naming listener: Int) -> [Entry] {
        guard let file = try? FileDescriptor.open(path, .readOnly, options: .closeOnExec) else { return [] }
        defer { try? file.close() }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while let count = try? unsafe buffer.withUnsafeMutableBytes({ try unsafe file.read(into: $0) }),
            count > 0
        {
            bytes += buffer.prefix(count)
        }
        let digits = String(listener, radix: 16, uppercase: true)
        let port = Array((String(repeating: "0", count: 4 - digits.count) + digits).utf8)
        return bytes.split(separator: UInt8(ascii: "\n")).filter { names(port, $0) }
            .compactMap { entry(String(decoding: $0, as: UTF8.self)[...]) }
    }

    /// Whether `line` has an address with the four digits of `port`.
    static func names(_ port: [UInt8], _ line: ArraySlice<UInt8>) -> Bool {
        line.indices.contains { index in
            line[index] == UInt8(ascii: ":") && line[(index + 1)...].starts(with: port)
        }
    }
}
#endif
