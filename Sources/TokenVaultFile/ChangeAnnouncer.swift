internal import Synchronization
internal import TokenVaultCore
internal import TokenVaultPlatform

/// Turns frames that come to light into events for the observers. Called in the order of the log, one at a
/// time.
final class ChangeAnnouncer: Sendable {
    private let ring: KeyRing
    private let hub: ChangeHub

    /// The latest change of each item whose names cannot be read yet.
    private struct Dark {
        static let capacity = 1_024

        let observation: UInt64
        var news: [ItemIdentifier: News] = [:]
        var overflowed = false

        mutating func keep(_ one: News) {
            guard !overflowed else { return }
            news[one.header.item] = one
            if news.count > Self.capacity {
                news = [:]
                overflowed = true
            }
        }
    }

    private struct News {
        let header: FrameHeader
        let metadata: [UInt8]
    }

    private let dark = Mutex<Dark?>(nil)

    init(ring: KeyRing, hub: ChangeHub) {
        self.ring = ring
        self.hub = hub
    }

    /// Whether there is an observer.
    var isObserved: Bool { hub.isObserved }

    /// Notifies the observers of the item's service, or keeps the change until the item's names can be read. Keeps it too
    /// where the keybag in use is not checked yet.
    func announce(_ frame: ScannedFrame, in file: any DiskFile, keepingDark: Bool) {
        guard let observation = hub.observation, frame.header.isItem,
            let bytes = try? file.read(frame.header.metadataLength, at: frame.offset + Frame.contentOffset)
        else { return }
        let news = News(header: frame.header, metadata: bytes)
        let isDark = keepingDark || tell(news, isFinal: false)
        dark.withLock { dark in
            if isDark {
                if dark?.observation != observation { dark = Dark(observation: observation) }
                dark?.keep(news)
            } else {
                dark?.news[frame.header.item] = nil
            }
        }
    }

    /// Publishes the kept changes, as far as the names can be read now.
    func announceDark() {
        guard let observation = hub.observation else { return }
        let kept = dark.withLock { dark in
            defer { dark = nil }
            return dark
        }
        guard let kept, kept.observation == observation else { return }
        if kept.overflowed, ring.isUnlocked {
            hub.overflow()
            return
        }
        var rest = Dark(observation: observation)
        rest.overflowed = kept.overflowed
        for news in kept.news.values.sorted(by: { $0.header.generation < $1.header.generation })
        where tell(news, isFinal: true) { rest.keep(news) }
        if rest.overflowed || !rest.news.isEmpty { dark.withLock { $0 = rest } }
    }

    /// Announces that there may be changes of items that cannot be named.
    func announceOverflow() {
        let observation = hub.observation
        dark.withLock { dark in
            dark = nil
            // A list made now shows nothing of the dark items.
            guard let observation, !ring.isUnlocked else { return }
            dark = Dark(observation: observation)
            dark?.overflowed = true
        }
        hub.overflow()
    }

    /// Publishes an event; returns whether it has to wait for keys. An item that can never be read gives no
    /// event. That is final only once the keys are those of the keybag in use.
    private func tell(_ news: News, isFinal: Bool) -> Bool {
        let header = news.header
        let keys: ClassKeys
        switch ring.access(policy: header.policy, setTag: header.setTag, version: header.keyVersion) {
        case .keys(let held): keys = held
        case .locked, .notPermitted, .unsupported: return true
        case .wrongDevice, .destroyed: return !isFinal
        case .closed: return false
        }
        let isDeletion = header.type == RecordType.deletion.rawValue
        do throws(TokenStorageError) {
            let opened = try ItemSealer.openMetadata(
                news.metadata, in: 0..<news.metadata.count, of: header.item, generation: header.generation,
                valueTag: header.valueTag, keys: keys, isDeletion: isDeletion)
            guard let metadata = opened?.metadata else { return false }
            let generation = Generation(rawValue: header.generation)
            hub.publish(
                service: metadata.service,
                isDeletion ? .deleted(metadata.key, generation) : .stored(metadata.key, generation))
            return false
        } catch {
            // The keys were wiped meanwhile.
            return error.code == .locked
        }
    }
}
