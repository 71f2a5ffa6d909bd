#if OAuth
import Logging
import Synchronization

/// Hears all that is logged in this process through swift-log, at every level.
final class LogCapture: Sendable {
    static let shared: LogCapture = {
        let capture = LogCapture()
        LoggingSystem.bootstrap { Handler(label: $0, capture: capture) }
        return capture
    }()

    private let lines = Mutex<[String]>([])

    var text: String { lines.withLock { $0.joined(separator: "\n") } }

    private struct Handler: LogHandler {
        let label: String
        let capture: LogCapture
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            capture.lines.withLock {
                $0.append("\(label) \(event.level) \(event.message) \(metadata) \(event.metadata ?? [:])")
            }
        }
    }
}
#endif
