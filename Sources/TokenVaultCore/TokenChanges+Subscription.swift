internal import Synchronization

extension TokenChanges {
    /// The queue of events that wait for one reader.
    final class Subscription: Sendable {
        static let capacity = 1_024

        private struct Reader {
            let ticket: UInt64
            let continuation: CheckedContinuation<TokenEvent?, Never>
        }

        private struct State {
            var order: [TokenKey] = []
            var events: [TokenKey: TokenEvent] = [:]
            var overflowed = false
            var ended = false
            var reader: Reader?
            var tickets: UInt64 = 0

            mutating func keep(_ event: TokenEvent) {
                switch event {
                case .stored(let key, _), .deleted(let key, _):
                    if events.updateValue(event, forKey: key) == nil { order.append(key) }
                    if order.count > Subscription.capacity { overflow() }
                case .overflowed: overflow()
                }
            }

            private mutating func overflow() {
                order = []
                events = [:]
                overflowed = true
            }

            mutating func take() -> TokenEvent? {
                if overflowed {
                    overflowed = false
                    return .overflowed
                }
                guard !order.isEmpty else { return nil }
                return events.removeValue(forKey: order.removeFirst())
            }
        }

        private enum Answer {
            case now(TokenEvent?)
            case later(instead: Reader?)
        }

        private let state = Mutex(State())
        private let whenGone: @Sendable () -> Void

        /// Creates a queue of events. `whenGone` is called when the last reference to the queue is released.
        init(whenGone: @escaping @Sendable () -> Void = {}) { self.whenGone = whenGone }

        deinit { whenGone() }

        /// Queues `event` for the reader, in place of an earlier event of the same key.
        func publish(_ event: TokenEvent) {
            let wake = state.withLock { state -> (Reader, TokenEvent)? in
                guard !state.ended else { return nil }
                state.keep(event)
                guard let reader = state.reader, let next = state.take() else { return nil }
                state.reader = nil
                return (reader, next)
            }
            if let (reader, event) = wake { reader.continuation.resume(returning: event) }
        }

        /// Drops the waiting events. If there were any, the reader has to list again.
        func forget() {
            state.withLock { state in
                if !state.order.isEmpty { state.keep(.overflowed) }
            }
        }

        /// Ends the sequence after the reader has read the waiting events.
        func end() {
            let reader = state.withLock { state in
                state.ended = true
                defer { state.reader = nil }
                return state.reader
            }
            reader?.continuation.resume(returning: nil)
        }

        /// Returns the next event, or `nil` at the end. Also returns `nil` when the task is cancelled and no
        /// event waits.
        func next() async -> TokenEvent? {
            // Cancelling one task must not end the wait of a later task.
            let ticket = state.withLock { state in
                state.tickets += 1
                return state.tickets
            }
            return await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let answer = state.withLock { state -> Answer in
                        if let event = state.take() { return .now(event) }
                        if state.ended || Task.isCancelled { return .now(nil) }
                        defer { state.reader = Reader(ticket: ticket, continuation: continuation) }
                        return .later(instead: state.reader)
                    }
                    switch answer {
                    case .now(let event): continuation.resume(returning: event)
                    // Two tasks read one sequence: the earlier wait ends, so that it does not hang.
                    case .later(let other): other?.continuation.resume(returning: nil)
                    }
                }
            } onCancel: {
                let reader = state.withLock { state -> Reader? in
                    guard let reader = state.reader, reader.ticket == ticket else { return nil }
                    state.reader = nil
                    return reader
                }
                reader?.continuation.resume(returning: nil)
            }
        }
    }
}
