import SystemPackage
import Testing
import TokenVault
import TokenVaultPlatform

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The files of the published vectors.
enum VectorFiles {
    static let folder = FilePath(#filePath).removingLastComponent().removingLastComponent()
        .removingLastComponent().appending("Vectors")

    /// What the manifest lists; nothing, which its own test tells, when it cannot be read.
    static let vectors: [Vector] = (try? manifest()) ?? []

    static func manifest() throws -> [Vector] {
        struct Manifest: Decodable {
            let format: Int
            let vectors: [Vector]
        }
        let manifest = try JSONDecoder().decode(
            Manifest.self, from: Data(try contents("manifest.json")))
        try #require(manifest.format == 1)
        return manifest.vectors
    }

    /// The bytes of a file below the folder.
    static func contents(_ path: String) throws -> [UInt8] {
        let path = folder.appending(path)
        let file = try PosixDirectory(path.removingLastComponent()).open(
            path.lastComponent?.string ?? "", .read)
        return try file.read(try file.attributes().size, at: 0)
    }

    /// The names in a directory below the folder.
    static func names(in path: String) throws -> [String] {
        try PosixDirectory(folder.appending(path)).names()
    }

    /// The bytes of a vector, with its changes.
    static func bytes(of vector: Vector) throws -> [UInt8] {
        var bytes = try contents(vector.file)
        if let length = vector.length {
            bytes = Array(bytes.prefix(length))
            bytes += [UInt8](repeating: 0, count: length - bytes.count)
        }
        for change in vector.changes ?? [] {
            let replacement = try hexadecimal(change.bytes)
            bytes.replaceSubrange(change.at..<change.at + replacement.count, with: replacement)
        }
        return bytes
    }
}
