internal import CSodium
internal import Synchronization
package import TokenVaultPlatform

/// The memory that keys of this process share: a few guarded pages, since an allocation for each would cost
/// 25 to 40 µs and eight kilobytes of guards, and would soon meet the limit on locked memory.
package final class KeyArena: Sendable {
    /// Where one key is.
    struct Slot: @unchecked Sendable {
        let pages: GuardedPages
        let region: Int
        let index: Int
        let bytes: UnsafeMutableRawBufferPointer

        /// Whether this process may touch the bytes.
        var isThere: Bool { pages.isThere }
    }

    private struct Region {
        let pages: GuardedPages
        /// The indices of slots that are free.
        var free: [Int]
        /// No key is added to it.
        var isClosed = false
    }

    private struct State {
        var regions: [Region] = []
        var wantsSecretPages: Bool
    }

    // One page holds 128 keys on most machines: those of dozens of vaults.
    private static let pagesPerRegion = 1

    private let state: Mutex<State>

    /// The arena of every key that is made in no other.
    package static var shared: KeyArena { own.current }
    private static let own = PerProcess { KeyArena(wantsSecretPages: false) }

    /// An arena that has no pages yet. With `wantsSecretPages`, of `memfd_secret(2)` where there is that.
    package init(wantsSecretPages: Bool) { state = Mutex(State(wantsSecretPages: wantsSecretPages)) }

    /// Keys that are made from now on lie in pages of `memfd_secret(2)`, where the system has that.
    package func wantSecretPages() {
        state.withLock { state in
            guard !state.wantsSecretPages else { return }
            state.wantsSecretPages = true
            // What is held stays where it is; nothing is added there.
            for index in state.regions.indices { state.regions[index].isClosed = true }
        }
    }

    /// The least that protects a key of this arena, or will protect the first one. Throws `unavailable` when
    /// there is no memory.
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

    /// Copies of all that is kept. For tests that look for it elsewhere.
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
