internal import TokenVaultCore
internal import TokenVaultCrypto
internal import TokenVaultPlatform

/// The memory of one thread of a survey.
struct SurveyMemory: ~Copyable {
    private(set) var bytes = [UInt8](repeating: 0, count: SurveyedChunk.length)
    var scratch = Scratch()

    /// Reads the frames at `offset`, at least one; returns their length, 0 where none is.
    mutating func read(_ file: any DiskFile, at offset: Int) throws(TokenStorageError) -> Int {
        var count = try fill(file, at: offset)
        if let length = Frame.length(ofPrefix: bytes), length > count, length > bytes.count {
            bytes = [UInt8](repeating: 0, count: length)
            count = try fill(file, at: offset)
        }
        var end = 0
        while end + Frame.prefixLength <= count, let length = Frame.length(ofPrefix: bytes, at: end),
            end + length <= count
        {
            end += length
        }
        return end
    }

    private mutating func fill(_ file: any DiskFile, at offset: Int) throws(TokenStorageError) -> Int {
        do throws(SystemFailure) {
            return try file.read(into: &bytes, at: offset)
        } catch {
            throw .system(error)
        }
    }
}
