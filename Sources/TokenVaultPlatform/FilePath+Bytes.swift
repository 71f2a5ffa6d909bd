package import SystemPackage

extension FilePath {
    /// The path as the kernel takes it, which need not be UTF-8.
    package var bytes: [UInt8] {
        withPlatformString { text in
            var bytes: [UInt8] = []
            var position = 0
            while text[position] != 0 {
                bytes.append(UInt8(bitPattern: text[position]))
                position += 1
            }
            return bytes
        }
    }

    /// The path of these bytes, none of which is zero.
    package init(bytes: [UInt8]) {
        self.init(platformString: bytes.map { CInterop.PlatformChar(bitPattern: $0) } + [0])
    }
}
