internal import SystemPackage
internal import TokenVaultPlatform

/// A line that is typed without echo, with the usual editing keys, and the bytes that arrive right after its
/// end. Its buffer never moves, and removed bytes are wiped.
///
/// Recognizes the marks that a terminal sends around a paste: `ESC [ 200 ~` and `ESC [ 201 ~`.
struct HiddenLine {
    enum Step { case more, done, cancelled, tooLong }

    private static let pasteBegins = Array("\u{1b}[200~".utf8)
    private static let pasteEnds = Array("\u{1b}[201~".utf8)

    private var bytes: [UInt8] = []
    private let limit: Int
    private var isInPaste = false
    // Whether more lines came after the line's end.
    private var hasMoreLines = false
    private var matched = 0

    init(limit: Int) {
        self.limit = limit
        bytes.reserveCapacity(limit + Self.pasteEnds.count)
    }

    /// Adds a byte to the line. Editing keys within a marked paste are part of its text.
    mutating func take(_ byte: UInt8) -> Step {
        switch byte {
        case 0x0a, 0x0d: return bytes.count > limit ? .tooLong : .done
        case 0x04 where !isInPaste: return bytes.isEmpty ? .cancelled : .done
        case 0x08 where !isInPaste, 0x7f where !isInPaste:
            // Removes one character, which may be several bytes of UTF-8.
            while let last = bytes.last {
                removeLast()
                if last & 0xc0 != 0x80 { break }
            }
        case 0x15 where !isInPaste: while !bytes.isEmpty { removeLast() }
        default:
            // A mark may follow a line of maximum length.
            if bytes.count == limit + Self.pasteEnds.count { return .tooLong }
            bytes.append(byte)
            takeMark()
        }
        return .more
    }

    /// Examines a byte after the line's end. Line ends and the end of a paste do not count as a further line.
    mutating func discard(_ byte: UInt8) {
        if isInPaste, byte == Self.pasteEnds[matched] {
            matched += 1
            guard matched == Self.pasteEnds.count else { return }
            isInPaste = false
            matched = 0
        } else {
            let isPartOfMark = isInPaste && byte == Self.pasteEnds[0]
            if matched > 0 || !isPartOfMark && byte != 0x0a && byte != 0x0d { hasMoreLines = true }
            matched = isPartOfMark ? 1 : 0
        }
    }

    /// The silence after which a paste is over, in milliseconds: longer once there is a paste or further
    /// lines.
    var quietMilliseconds: CInt { isInPaste ? 1_000 : hasMoreLines ? 500 : 150 }

    /// Returns the answer for a line that ended with `step`. Fails with `EFBIG` for a line that is too long.
    mutating func result(of step: Step) -> Result<Terminal.Answer, SystemFailure> {
        if step == .tooLong { return .failure(SystemFailure(.fileTooLarge, "read")) }
        if hasMoreLines || matched > 0 { return .success(.severalLines) }
        return .success(step == .cancelled ? .cancelled : .bytes(hand()))
    }

    mutating func wipe() { SmallFile.wipe(&bytes) }

    /// Hands the bytes over to the caller.
    private mutating func hand() -> [UInt8] {
        let handed = bytes
        bytes = []
        return handed
    }

    private mutating func takeMark() {
        guard bytes.last == Self.pasteEnds.last else { return }
        let mark = isInPaste ? Self.pasteEnds : Self.pasteBegins
        guard bytes.suffix(mark.count).elementsEqual(mark) else { return }
        for _ in mark { removeLast() }
        isInPaste.toggle()
    }

    private mutating func removeLast() {
        bytes[bytes.count - 1] = 0
        bytes.removeLast()
    }
}
