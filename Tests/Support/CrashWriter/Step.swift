/// One call of a writer, as both sides know it: from its number and its writer's name follows all of it.
struct Step {
    enum Action {
        case store(String)
        case delete(String)
        case pair(String, String)
        case compact
    }

    var action: Action
    private var writer: Int
    private var number: Int

    /// Step `number` of the writer `writer`.
    init(writer: Int, number: Int) {
        self.writer = writer
        self.number = number
        var generator = SeededGenerator(seed: UInt64(writer) << 32 | UInt64(number))
        func key() -> String { "\(writer)-\(Int.random(in: 0..<8, using: &generator))" }
        switch Int.random(in: 0..<20, using: &generator) {
        case 0: action = .compact
        case 1..<5: action = .delete(key())
        case 5..<9:
            let first = key()
            var second = key()
            while second == first { second = key() }
            action = .pair(first, second)
        default: action = .store(key())
        }
    }

    /// The value that the step stores under `key`.
    func value(_ key: String) -> String {
        let length = (number * 37) % 2_500
        return "\(key) of step \(number) " + String(repeating: "x", count: length)
    }

    /// What the step changes; `nil` for a key that it deletes.
    var changes: [String: String?] {
        switch action {
        case .store(let key): [key: value(key)]
        case .delete(let key): [key: nil]
        case .pair(let first, let second): [first: value(first), second: value(second)]
        case .compact: [:]
        }
    }
}
