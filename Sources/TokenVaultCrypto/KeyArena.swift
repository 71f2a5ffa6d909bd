internal import CSodium
internal import Synchronization
package import TokenVaultPlatform

/// The memory that the keys of this process share: a few guarded pages. A guarded allocation for each key
/// would cost 25 to 40 µs and eight kilobytes of guards. It would also soon reach the limit on locked memory.
package final class KeyArena: Sendable {
    /// The place of one key.
    struct Slot: @unchecked Sendable {
        let pages: GuardedPages
        let region: Int
        let index: Int
        let bytes: UnsafeMutableRawBufferPointer

        /// Whether this process may access the bytes.
        var isThere: Bool { pages.isThere }
    }

    private struct Region {
        let pages: GuardedPages
        /// The indices of free slots.
        var free: [Int]
        /// Whether the region is closed to further keys.
        var isClosed = false
    }

    private struct State {
        var regions: [Region] = []
        var wantsSecretPages: Bool
    }

    // One page holds 128 keys on most machines, enough for dozens of vaults.
    private static let pagesPerRegion = 1

    private let state: Mutex<State>

    /// The default arena for keys.
    package static var shared: KeyArena { own.current }
    private static let own = PerProcess { KeyArena(wantsSecretPages: false) }

    /// Creates an arena without pages. With `wantsSecretPages` it uses `memfd_secret(2)` where the system has
    /// it.
    package init(wantsSecretPages: Bool) { state = Mutex(State(wantsSecretPages: wantsSecretPages)) }

    /// Places keys that are made from now on in pages of `memfd_secret(2)`, where the system has it.
    package func wantSecretPages() {
        state.withLock { state in
            guard !state.wantsSecretPages else { return }
            state.wantsSecretPages = true
            // Existing keys stay in their regions, which accept no further keys.
            for index in state.regions.indices { state.regions[index].isClosed = true }
        }
    }

    /// Returns the weakest protection of the keys in this arena, or that of the first key to come. Throws
    /// `unavailable` when there is no memory.
    package func protection() throws(CryptoError) -> GuardedPages.Protection {
        let least: GuardedPages.Protection? = state.withLock { state in
            if state.regions.isEmpty { _ = addRegion(to: &state) }
            return state.regions.map(\.pages.protection).min()
        }
        guard let least else { throw .unavailable }
        return least
    }

    func allocate() throws(CryptoError) -> Slot {
        guard Sodium.isReady else { throw .unavailable }
        let slot: Slot? = state.withLock { state in
            var region = state.regions.firstIndex {
                !$0.isClosed && !$0.free.isEmpty && $0.pages.isThere
            }
            if region == nil { region = addRegion(to: &state) }
            guard let region else { return nil }
            let index = state.regions[region].free.removeLast()
            let pages = state.regions[region].pages
            let start = index * SymmetricKey.length
            return Slot(
                pages: pages, region: region, index: index,
                bytes: UnsafeMutableRawBufferPointer(
                    rebasing: pages.bytes[start..<start + SymmetricKey.length]))
        }
        guard let slot else { throw .unavailable }
        return slot
    }

    private func addRegion(to state: inout State) -> Int? {
        let pages = GuardedPages(count: Self.pagesPerRegion, asSecret: state.wantsSecretPages)
        guard let pages else { return nil }
        let count = pages.bytes.count / SymmetricKey.length
        state.regions.append(Region(pages: pages, free: Array((0..<count).reversed())))
        return state.regions.count - 1
    }

    func release(_ slot: Slot) {
        guard slot.pages.isThere else { return }
        sodium_memzero(slot.bytes.start, slot.bytes.count)
        state.withLock { $0.regions[slot.region].free.append(slot.index) }
    }

    /// Copies of all key bytes, for tests that search other memory for them.
    package var contents: [SecretBytes] {
        state.withLock { state in
            state.regions.flatMap { region -> [SecretBytes] in
                let bytes = UnsafeRawBufferPointer(region.pages.bytes)
                return stride(from: 0, to: bytes.count, by: SymmetricKey.length).compactMap { start in
                    let key = bytes[start..<start + SymmetricKey.length]
                    return key.allSatisfy { $0 == 0 } ? nil : SecretBytes(copying: key)
                }
            }
        }
    }
}
