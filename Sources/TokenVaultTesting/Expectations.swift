import TokenVault

/// Fails unless `condition` holds.
func expect(
    _ condition: Bool, _ expected: String, found: @autoclosure () -> String = "otherwise",
    file: String = #fileID, line: Int = #line
) throws {
    guard !condition else { return }
    throw ConformanceFailure(expected: expected, found: found(), file: file, line: line)
}

/// Fails unless `found` equals `expected`.
func expect<Value: Equatable>(
    _ found: Value, is expected: Value, _ what: String, file: String = #fileID, line: Int = #line
) throws {
    guard found != expected else { return }
    throw ConformanceFailure(
        expected: "\(what): \(describe(expected))", found: describe(found), file: file, line: line)
}

/// Fails unless `found` has exactly the bytes of `expected`. Swift may call texts with different bytes equal.
func expect(
    bytesOf found: String?, are expected: String?, _ what: String, file: String = #fileID,
    line: Int = #line
) throws {
    try expect(
        found.map { Array($0.utf8) }, is: expected.map { Array($0.utf8) }, what, file: file, line: line)
}

/// Returns the value. Fails when it is `nil`.
func require<Value>(
    _ value: Value?, _ what: String, file: String = #fileID, line: Int = #line
) throws -> Value {
    guard let value else {
        throw ConformanceFailure(expected: what, found: "nil", file: file, line: line)
    }
    return value
}

/// Fails unless `body` throws a ``TokenStorageError`` with one of `codes`. Returns the error.
@discardableResult
func expectRefusal<Result>(
    _ codes: TokenStorageError.Code..., of what: String, file: String = #fileID, line: Int = #line,
    _ body: () async throws -> Result
) async throws -> TokenStorageError {
    let expected = "\(what): \(codes.map(\.rawValue).joined(separator: " or "))"
    let result: Result
    do {
        result = try await body()
    } catch let error as TokenStorageError where codes.contains(error.code) {
        return error
    } catch let error as TokenStorageError {
        throw ConformanceFailure(expected: expected, found: describe(error), file: file, line: line)
    }
    throw ConformanceFailure(
        expected: expected, found: "no error but \(describe(result))", file: file, line: line)
}

/// Returns a readable form of a value: secrets by their length, long texts cut.
func describe(_ value: Any) -> String {
    switch value {
    case let secret as Secret: return "a secret of \(secret.count) bytes"
    case let error as TokenStorageError:
        return "\(error.code.rawValue) from \(error.backend), \(error.operation)"
    default:
        let text = String(describing: value)
        return text.count > 200 ? "\(text.prefix(200))…" : text
    }
}

/// Names and details that checks use.
enum Samples {
    /// Returns a secret of `count` bytes, different for each `seed`. Its bytes repeat every 251, which is no
    /// power of two.
    static func secret(_ count: Int, seed: UInt8 = 0) -> Secret {
        Secret((0..<count).map { UInt8(truncatingIfNeeded: $0 % 251) ^ seed })
    }

    /// The same word with é as one scalar, and as e and a combining accent. Swift calls them equal.
    static let composed = "caf\u{e9}"
    static let decomposed = "cafe\u{301}"

    /// Every control character: U+0000 to U+001F and U+007F to U+009F.
    static let controls: [Character] = (Array(0...0x1f) + Array(0x7f...0x9f)).compactMap {
        Unicode.Scalar(UInt32($0)).map { Character($0) }
    }
}
