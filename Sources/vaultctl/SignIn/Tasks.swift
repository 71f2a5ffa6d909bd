import TokenVaultPlatform

/// Tasks, for a program that has none: its one thread waits.
enum Tasks {
    /// What `body` gives; `nil` when `deadline` passes first.
    static func wait<Value: Sendable>(
        until deadline: Deadline?, for body: @escaping @Sendable () async -> Value
    ) -> Value? {
        let answer = Monitor<Value?>(nil)
        Task.detached {
            let value = await body()
            answer.announce { $0 = value }
        }
        guard let deadline else { return answer.wait { $0 } }
        return answer.wait(atMost: deadline.remaining) { $0 }
    }
}
