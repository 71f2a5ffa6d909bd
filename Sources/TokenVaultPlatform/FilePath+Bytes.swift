internal import Glibc
package import SystemPackage

extension FilePath {
    /// The path as the kernel takes it, which need not be UTF-8.
    package var bytes: [UInt8] {
        withPlatformString { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
    }

    /// The path of these bytes, none of which is zero.
    package init(bytes: [UInt8]) {
        self.init(platformString: bytes.map { CInterop.PlatformChar(bitPattern: $0) } + [0])
    }

    /// The path without its last component, as `removingLastComponent()` has it: empty for a single name, and `/` for what is
    /// in the root. That one has the runtime look through the conformances of the whole program, which takes a
    /// short command longer than what it is there for.
    package var parent: FilePath {
        var bytes = bytes
        guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return FilePath() }
        bytes.removeLast(bytes.count - max(1, slash))
        return FilePath(bytes: bytes)
    }
}

extension String {
    /// A text that shows bytes which are no UTF-8: what is text as it is, `\xff` for each byte that is none, and `\\` for
    /// a backslash.
    package init(escaping bytes: [UInt8]) {
        self = ""
        var parser = Unicode.UTF8.ForwardParser()
        var rest = bytes.makeIterator()
        var position = 0
        while true {
            switch parser.parseScalar(from: &rest) {
            case .valid(let encoded):
                let scalar = Unicode.UTF8.decode(encoded)
                position += encoded.count
                if scalar == "\\" { append("\\\\") } else { unicodeScalars.append(scalar) }
            case .error(let length):
                for byte in bytes[position..<min(position + length, bytes.count)] {
                    append("\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16))
                }
                position += length
            case .emptyInput: return
            }
        }
    }
}
