internal import Glibc

/// The owners of TCP sockets on the loopback of this machine, by the kernel's answer to one question (sock_diag(7)).
///
/// The table of all sockets (`/proc/net/tcp`) has the same facts. The kernel walks its whole hash table to print that,
/// which takes 15 ms on a machine with much memory.
package enum SocketOwner {
    /// Returns the user of the socket at the loopback port `port` that is connected to the loopback port `remotePort`.
    /// Returns `nil` without such a socket, and when the kernel does not answer.
    package static func user(of port: UInt16, connectedTo remotePort: UInt16, isIPv6: Bool) -> UInt32? {
        let descriptor = socket(AF_NETLINK, CInt(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue), diagnosis)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let question = question(port, remotePort, isIPv6: isIPv6)
        guard send(descriptor, question, question.count, 0) == question.count else { return nil }
        var answer = [UInt8](repeating: 0, count: 1_024)
        // The kernel has answered before `send` returns.
        let count = recv(descriptor, &answer, answer.count, CInt(MSG_DONTWAIT))
        return count > 0 ? user(in: answer.prefix(count)) : nil
    }

    // NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST and TCP_ESTABLISHED of the kernel's headers.
    private static let diagnosis: CInt = 4
    private static let byFamily: UInt16 = 20
    private static let request: UInt16 = 1
    private static let established: UInt8 = 1

    /// `struct nlmsghdr` and `struct inet_diag_req_v2` with the addresses of both ends.
    private static func question(_ port: UInt16, _ remotePort: UInt16, isIPv6: Bool) -> [UInt8] {
        let address: [UInt8] =
            isIPv6
            ? [UInt8](repeating: 0, count: 15) + [1] : [127, 0, 0, 1] + [UInt8](repeating: 0, count: 12)
        let family = UInt8(isIPv6 ? AF_INET6 : AF_INET)
        // Any extension, state, interface and cookie.
        let socket =
            [family, UInt8(IPPROTO_TCP), 0, 0] + bytes(of: UInt32.max) + bytes(of: port.bigEndian)
            + bytes(of: remotePort.bigEndian) + address + address + bytes(of: UInt32(0))
            + bytes(of: UInt64.max)
        let length = UInt32(16 + socket.count)
        return bytes(of: length) + bytes(of: byFamily) + bytes(of: request) + bytes(of: UInt64(0)) + socket
    }

    /// Reads the user in `struct inet_diag_msg`; `nil` for an error and for a socket that is not connected.
    static func user(in answer: ArraySlice<UInt8>) -> UInt32? {
        let answer = Array(answer)
        guard answer.count >= 88, Array(answer[4..<6]) == bytes(of: byFamily), answer[17] == established
        else { return nil }
        return answer.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 80, as: UInt32.self) }
    }

    private static func bytes(of value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value) { Array($0) }
    }
}
