#if OAuth
import Foundation
import Synchronization

/// Notes whatever can be printed of values and errors.
final class Listener: Sendable {
    private let texts = Mutex<[String]>([])

    var text: String { texts.withLock { $0.joined(separator: "\n") } }
    var count: Int { texts.withLock { $0.count } }

    /// Notes all that `value` shows of itself when a program prints, dumps or mirrors it.
    func hear(_ value: Any) {
        var dumped = ""
        dump(value, to: &dumped)
        var heard = ["\(value)", String(reflecting: value), dumped]
        if let error = value as? any Error {
            heard += [error.localizedDescription, "\(error as NSError)", "\((error as NSError).userInfo)"]
        }
        Self.walk(Mirror(reflecting: value), depth: 0, &heard)
        texts.withLock { $0 += heard }
    }

    /// Does `body`; notes what it throws, and what it gives.
    func attempt<Value>(_ body: () async throws -> Value) async {
        do { hear(try await body()) } catch { hear(error) }
    }

    private static func walk(_ mirror: Mirror, depth: Int, _ heard: inout [String]) {
        guard depth < 8 else { return }
        for child in mirror.children {
            heard.append("\(child.label ?? "-"): \(child.value)")
            walk(Mirror(reflecting: child.value), depth: depth + 1, &heard)
        }
        if let parent = mirror.superclassMirror { walk(parent, depth: depth + 1, &heard) }
    }
}
#endif
