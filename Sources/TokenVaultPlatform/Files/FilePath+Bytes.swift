internal import Glibc
package import SystemPackage

extension FilePath {
    /// The path as bytes for the kernel, which need not be UTF-8.
    package var bytes: [UInt8] {
        withPlatformString { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
    }

    /// Creates a path from these bytes, none of which is zero.
    package init(bytes: [UInt8]) {
        self.init(platformString: bytes.map { CInterop.PlatformChar(bitPattern: $0) } + [0])
    }

    /// The path without its last component, as from `removingLastComponent()`: empty for a single name, and
    /// `/` for a file in the root. That method makes the runtime search the conformances of the whole
    /// program, which takes a short command longer than its own work.
    package var parent: FilePath {
        var bytes = bytes
        guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return FilePath() }
        bytes.removeLast(bytes.count - max(1, slash))
        return FilePath(bytes: bytes)
    }
}

extension String {
    /// Creates a text from bytes that need not be UTF-8: valid text unchanged, `\xff` for each invalid byte,
    /// and `\\` for a backslash.
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
