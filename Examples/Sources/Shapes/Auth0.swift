// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Foundation

/// The shape of Auth0's storage: synchronous, throws when absent.
public protocol CredentialsStorage {
    func getEntry(forKey: String) throws -> Data
    func setEntry(_ data: Data, forKey: String) throws
    func deleteEntry(forKey: String) throws
    func deleteAllEntries() throws
}
