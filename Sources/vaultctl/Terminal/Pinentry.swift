internal import ProgramSupport
import SystemPackage
import TokenVaultPlatform

/// A conversation with pinentry in the Assuan protocol. Each request is one line. The answer is lines up to
/// the one with the result.
struct Pinentry {
    private let helper: HelperProgram
    private let deadline: Deadline?

    // Longer than any line of the protocol (1,000 bytes).
    private static let longestLine = 4_096

    /// Begins the conversation with a program that has just started. Throws the failure of the system,
    /// `ETIMEDOUT`, and `EPROTO` for an unexpected answer.
    init(_ helper: HelperProgram, deadline: Deadline?) throws(SystemFailure) {
        self.helper = helper
        self.deadline = deadline
        try expectDone()
        // The typed text comes back as UTF-8. A pinentry that does not know the option continues without it.
        try send("OPTION lc-ctype=C.UTF-8")
        _ = try answer()
    }

    /// Asks for a secret of at most `limit` bytes; `nil` when the user cancels. The caller wipes the secret.
    /// Throws `EFBIG`, and the errors of ``init(_:deadline:)``.
    func ask(_ description: String, prompt: String, limit: Int) throws(SystemFailure) -> [UInt8]? {
        try send("SETDESC \(Self.escaped(description))")
        try expectDone()
        try send("SETPROMPT \(Self.escaped(prompt))")
        try expectDone()
        try send("GETPIN")
        var secret: [UInt8] = []
        secret.reserveCapacity(limit)
        do throws(SystemFailure) {
            while true {
                guard var line = try helper.readLine(limit: Self.longestLine, deadline: deadline) else {
                    throw Self.misunderstood
                }
                defer { SmallFile.wipe(&line) }
                if line.starts(with: "D ".utf8) {
                    try Self.decode(line[2...], onto: &secret, limit: limit)
                } else if Self.isDone(line) {
                    return secret
                } else if let code = Self.error(line) {
                    // GPG_ERR_CANCELED, GPG_ERR_FULLY_CANCELED
                    if code == 99 || code == 198 { return nil }
                    // GPG_ERR_TIMEOUT
                    throw code == 62 ? SystemFailure(.timedOut, "pinentry") : Self.misunderstood
                }
            }
        } catch {
            SmallFile.wipe(&secret)
            throw error
        }
    }

    /// Ends the conversation.
    func leave() { try? send("BYE") }

    private static let misunderstood = SystemFailure(.protocolError, "pinentry")

    private func send(_ line: String) throws(SystemFailure) {
        try helper.write(line + "\n", deadline: deadline)
    }

    private func expectDone() throws(SystemFailure) {
        guard try answer() else { throw Self.misunderstood }
    }

    /// Whether pinentry accepts the request.
    private func answer() throws(SystemFailure) -> Bool {
        while let line = try helper.readLine(limit: Self.longestLine, deadline: deadline) {
            if Self.isDone(line) { return true }
            if Self.error(line) != nil { return false }
            // Comments and status lines.
        }
        throw Self.misunderstood
    }

    private static func isDone(_ line: [UInt8]) -> Bool {
        line.starts(with: "OK".utf8) && (line.count == 2 || line[2] == UInt8(ascii: " "))
    }

    /// Returns the code of an error line, without the error's source.
    private static func error(_ line: [UInt8]) -> UInt32? {
        guard line.starts(with: "ERR ".utf8) else { return nil }
        let digits = line[4...].prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        return UInt32(String(decoding: digits, as: UTF8.self)).map { $0 & 0xffff } ?? 0
    }

    /// Decodes a data line and appends its bytes: `%` and two hexadecimal digits are a byte.
    static func decode(
        _ line: ArraySlice<UInt8>, onto secret: inout [UInt8], limit: Int
    ) throws(SystemFailure) {
        var rest = line
        while let byte = rest.popFirst() {
            guard secret.count < limit else { throw SystemFailure(.fileTooLarge, "pinentry") }
            guard byte == UInt8(ascii: "%") else {
                secret.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(hexadecimal),
                let low = rest.popFirst().flatMap(hexadecimal)
            else { throw misunderstood }
            secret.append(high << 4 | low)
        }
    }

    private static func hexadecimal(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        default: nil
        }
    }

    /// Returns `text` escaped for one line of the protocol.
    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            if scalar == "%" || scalar.value < 0x20 || scalar.value == 0x7f {
                let digits = String(scalar.value, radix: 16, uppercase: true)
                result += "%" + (digits.count == 1 ? "0" : "") + digits
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
