// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Foundation

/// The shape of supabase-swift's storage: synchronous, `nil` when absent.
public protocol AuthLocalStorage: Sendable {
    func store(key: String, value: Data) throws
    func retrieve(key: String) throws -> Data?
    func remove(key: String) throws
}
