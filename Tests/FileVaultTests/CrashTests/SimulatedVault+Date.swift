#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension SimulatedVault {
    /// The time at which everything happens.
    static let date = Date(timeIntervalSince1970: 1_700_000_000)
}
