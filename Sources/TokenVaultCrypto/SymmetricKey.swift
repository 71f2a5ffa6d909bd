internal import CSodium
internal import Synchronization

/// A 32-byte key in guarded, locked memory, wiped by ``wipe()`` and when the last reference goes.
///
/// Keys share regions of `sodium_malloc` (guard pages, `mlock`, left out of core dumps): one region
/// holds 64 keys, since one allocation each would cost 25 to 40 µs and eight kilobytes of guards.
package final class SymmetricKey: @unchecked Sendable {
    /// The length of every key, in bytes.
    package static let length = 32

    // `wipe` may run while another thread seals with this key. The lock makes that one order or the
    // other: a wiped key is refused, never used as zeros.
    private let slot: Mutex<KeyRegion.Slot?>

    /// A key filled by `body`, which gets 32 zero bytes. Throws `unavailable` when there is no guarded
    /// memory to be had, and what `body` throws.
    package init(
        filling body: (UnsafeMutableRawBufferPointer) throws(CryptoError) -> Void
    ) throws(CryptoError) {
        let fresh = try KeyRegion.allocate()
        do {
            try body(fresh.bytes)
        } catch {
            KeyRegion.release(fresh)
            throw error
        }
        slot = Mutex(fresh)
    }

    /// A fresh random key.
    package static func random() throws(CryptoError) -> SymmetricKey {
        try SymmetricKey { (bytes) throws(CryptoError) in
            randombytes_buf(bytes.start, length)
        }
    }

    /// A key copied from 32 bytes.
    package convenience init(copying bytes: SecretBytes, from offset: Int = 0) throws(CryptoError) {
        guard offset >= 0, bytes.count - offset >= Self.length else { throw .invalidParameter }
        try self.init { (target) throws(CryptoError) in
            bytes.withUnsafeBytes { source in
                target.copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: source[offset..<offset + Self.length]))
            }
        }
    }

    /// The same key in memory of its own. Throws `unavailable` when it was wiped.
    package func copy() throws(CryptoError) -> SymmetricKey {
        guard let bytes = Self.concatenating([self]) else { throw .unavailable }
        return try SymmetricKey(copying: bytes)
    }

    /// A copy of several keys' bytes, one behind the other, to be sealed; `nil` when one was wiped.
    package static func concatenating(_ keys: [SymmetricKey]) -> SecretBytes? {
        var complete = true
        let bytes = SecretBytes(capacity: keys.count * length) { target in
            for (index, key) in keys.enumerated() {
                let part = UnsafeMutableRawBufferPointer(
                    rebasing: target[index * length..<(index + 1) * length])
                if key.withBytes({ part.copyMemory(from: $0) }) == nil { complete = false }
            }
            return target.count
        }
        return complete ? bytes : nil
    }

    /// Wipes the key now. Whoever still holds it can seal and open nothing any more.
    package func wipe() {
        slot.withLock { slot in
            if let held = slot { KeyRegion.release(held) }
            slot = nil
        }
    }

    /// Whether ``wipe()`` has run.
    package var isWiped: Bool { slot.withLock { $0 == nil } }

    deinit { wipe() }

    /// Runs `body` with the key's 32 bytes; `nil` when the key was wiped.
    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
        slot.withLock { slot in
            guard let slot else { return nil }
            return body(UnsafeRawBufferPointer(slot.bytes))
        }
    }
}

/// A guarded region that holds the keys of the process.
private struct KeyRegion {
    struct Slot: @unchecked Sendable {
        let region: Int
        let index: Int
        let bytes: UnsafeMutableRawBufferPointer
    }

    private static let keysPerRegion = 64

    private struct State: @unchecked Sendable {
        var regions: [UnsafeMutableRawPointer] = []
        var used: [UInt64] = []
    }

    private static let state = Mutex(State())

    static func allocate() throws(CryptoError) -> Slot {
        guard Sodium.isReady else { throw .unavailable }
        let slot: Slot? = state.withLock { state in
            for region in state.regions.indices where ~state.used[region] != 0 {
                let index = (~state.used[region]).trailingZeroBitCount
                state.used[region] |= 1 << UInt64(index)
                return make(state.regions[region], region, index)
            }
            guard let fresh = sodium_malloc(keysPerRegion * SymmetricKey.length) else { return nil }
            sodium_memzero(fresh, keysPerRegion * SymmetricKey.length)
            state.regions.append(fresh)
            state.used.append(1)
            return make(fresh, state.regions.count - 1, 0)
        }
        guard let slot else { throw .unavailable }
        return slot
    }

    private static func make(_ base: UnsafeMutableRawPointer, _ region: Int, _ index: Int) -> Slot {
        Slot(
            region: region, index: index,
            bytes: UnsafeMutableRawBufferPointer(
                start: base + index * SymmetricKey.length, count: SymmetricKey.length))
    }

    static func release(_ slot: Slot) {
        sodium_memzero(slot.bytes.start, slot.bytes.count)
        state.withLock { $0.used[slot.region] &= ~(1 << UInt64(slot.index)) }
    }
}
