internal import CSodium
internal import Synchronization
internal import TokenVaultPlatform

/// A 32-byte key in a ``KeyArena``, wiped by ``wipe()`` and when the last reference is released.
package final class SymmetricKey: @unchecked Sendable {
    /// The length of every key, in bytes.
    package static let length = 32

    // `wipe` may run while other threads seal with this key; they do not wait for one another. A key that is
    // being wiped rejects new users, and is wiped after its last user has finished. It is never used as
    // zeros.
    private let users = Atomic<UInt64>(0)
    private static let isGoing: UInt64 = 1 << 63
    private let isReleased = Mutex(false)
    private let slot: KeyArena.Slot
    private let arena: KeyArena

    /// Creates a key filled by `body`, which gets 32 zero bytes. Throws `unavailable` when there is no
    /// guarded memory, and the error of `body`.
    package init(
        in arena: KeyArena = .shared,
        filling body: (UnsafeMutableRawBufferPointer) throws(CryptoError) -> Void
    ) throws(CryptoError) {
        let fresh = try arena.allocate()
        do {
            try body(fresh.bytes)
        } catch {
            arena.release(fresh)
            throw error
        }
        slot = fresh
        self.arena = arena
    }

    /// Returns a fresh random key.
    package static func random() throws(CryptoError) -> SymmetricKey {
        try SymmetricKey { (bytes) throws(CryptoError) in
            randombytes_buf(bytes.start, length)
        }
    }

    /// Creates a key from a copy of 32 bytes.
    package convenience init(copying bytes: SecretBytes, from offset: Int = 0) throws(CryptoError) {
        guard offset >= 0, bytes.count - offset >= Self.length else { throw .invalidParameter }
        try self.init { (target) throws(CryptoError) in
            bytes.withUnsafeBytes { source in
                target.copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: source[offset..<offset + Self.length]))
            }
        }
    }

    /// Returns the same key in memory of its own. Throws `unavailable` when it was wiped.
    package func copy() throws(CryptoError) -> SymmetricKey {
        guard let bytes = Self.concatenating([self]) else { throw .unavailable }
        return try SymmetricKey(copying: bytes)
    }

    /// Returns a copy of several keys' bytes in a row, for sealing, or `nil` when one was wiped.
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

    /// Wipes the key now. Every later use of it fails. Waits for seals and openings under way, which are of
    /// at most a megabyte.
    package func wipe() {
        isReleased.withLock { isReleased in
            guard !isReleased else { return }
            users.bitwiseOr(Self.isGoing, ordering: .acquiringAndReleasing)
            // In a forked child the users are threads of the parent, and the pages are missing too.
            while slot.isThere, users.load(ordering: .acquiring) != Self.isGoing { WorkerThread.giveWay() }
            arena.release(slot)
            isReleased = true
        }
    }

    /// Whether ``wipe()`` has run or has begun.
    package var isWiped: Bool { users.load(ordering: .acquiring) & Self.isGoing != 0 }

    deinit { wipe() }

    /// Runs `body` with the key's 32 bytes, concurrently with other users. Returns `nil` when the key was
    /// wiped, or belongs to another process. `body` must not wipe it.
    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
        let isThere = begin()
        defer { end() }
        return isThere ? body(bytes) : nil
    }

    /// Returns the right to use the key several times, or `nil` when the key was wiped or belongs to another
    /// process. ``wipe()`` waits until the right is given back. Do not hold it for longer than a few
    /// milliseconds, nor while waiting.
    package func use() -> KeyUse? {
        guard begin() else {
            end()
            return nil
        }
        return KeyUse(of: self)
    }

    /// Adds a user. Returns false when the key must not be used. ``end()`` follows either way.
    private func begin() -> Bool {
        let before = users.wrappingAdd(1, ordering: .acquiring).oldValue
        return before & Self.isGoing == 0 && slot.isThere
    }

    fileprivate func end() { users.wrappingSubtract(1, ordering: .releasing) }

    fileprivate var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(slot.bytes) }
}

/// A key in use, for code that seals and opens many things. It needs no check of the key for each of them:
/// the check writes to a word that all threads share.
package struct KeyUse: ~Copyable {
    private let key: SymmetricKey
    /// The key's 32 bytes.
    let bytes: UnsafeRawBufferPointer

    fileprivate init(of key: SymmetricKey) {
        self.key = key
        bytes = key.bytes
    }

    deinit { key.end() }
}
