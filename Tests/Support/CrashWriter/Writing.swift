import SystemPackage
import TokenVault

/// The process that is killed: it makes one step after the other and says so.
struct Writing {
    let vault: String
    let state: String
    /// The writer's number: its keys begin with it.
    let name: Int
    let seed: UInt64

    /// Makes steps for ever, from number `first` on. Before each it prints `begin NUMBER`, and after each
    /// `done NUMBER GENERATION`.
    func run(from first: Int) throws {
        let vault = try BlockingFileVault.open(
            at: FilePath(vault), configuration: configuration(state: state))
        try vault.unlock(with: testKey)
        let storage = vault.storage(service: testService)
        var number = first
        while true {
            let step = Step(writer: name, number: number)
            write(1, "begin \(number)\n")
            var generation: Generation?
            switch step.action {
            case .store(let key): generation = try storage.store(token: step.value(key), for: TokenKey(key))
            case .delete(let key): generation = try storage.commit([.delete(TokenKey(key))]).generation
            case .pair(let one, let other):
                generation = try storage.commit(
                    [one, other].map { .store(Secret(utf8: step.value($0)), for: TokenKey($0)) }
                ).generation
            case .compact: _ = try vault.compact()
            }
            write(1, "done \(number) \(generation?.rawValue ?? 0)\n")
            number += 1
        }
    }
}
