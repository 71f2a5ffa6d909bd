import ArgumentParser
import TestLanes
import Testing

@testable import vaultctl

/// `retrieve` and `token` have two parsers. They must never disagree.
@Suite(.tags(.programs), .from(.usual)) struct ParserAgreementTests {
    @Test func bothParsersUnderstandEveryLineAlike() {
        expectAgreement(of: "retrieve", options: Self.names, seed: 20_261_121, FastRetrieve.parse) {
            CommandLineParser.retrieveArguments($0, root: RetrieveRoot.self)
        }
    }

    @Test func bothParsersUnderstandEveryLineOfTokenAlike() {
        let names = Self.names.map { $0 == "service" ? "min-valid" : $0 } + ["renew", "id"]
        expectAgreement(of: "token", options: names, seed: 20_261_122, FastToken.parse) {
            CommandLineParser.tokenArguments($0, root: TokenRoot.self)
        }
    }

    private func expectAgreement<Arguments: Equatable>(
        of command: String, options: [String], seed: UInt64, _ fast: ([String]) -> Arguments?,
        _ slow: ([String]) -> Arguments?
    ) {
        var generator = SplitMix(state: seed)
        var accepted = 0
        for _ in 0..<Self.lines {
            let arguments = Self.line(of: command, options: options, using: &generator)
            let (fast, slow) = (fast(arguments), slow(arguments))
            if fast != nil {
                accepted += 1
                #expect(slow == fast, "\(arguments)")
            } else if !Self.isLeftToTheSlowOne(arguments) {
                #expect(slow == nil, "\(arguments)")
            }
        }
        // Neither valid nor invalid command lines may be too rare.
        #expect((Self.lines / 5...Self.lines * 4 / 5).contains(accepted))
    }

    @Test(arguments: [
        (["retrieve", "k"], RetrieveArguments(key: "k")),
        (["retrieve", "--", "-k"], RetrieveArguments(key: "-k")),
        (
            ["retrieve", "--service", "s", "k", "--json"],
            RetrieveArguments(key: "k", service: "s", json: true)
        ),
        (["retrieve", "--service=a=b", "k"], RetrieveArguments(key: "k", service: "a=b")),
        (["retrieve", "--service=\u{301}", "k"], RetrieveArguments(key: "k", service: "\u{301}")),
        (
            ["retrieve", "k", "--service=\u{200D}=\u{FE0F}"],
            RetrieveArguments(key: "k", service: "\u{200D}=\u{FE0F}")
        ),
        (["retrieve", "--service=", "k"], RetrieveArguments(key: "k", service: "")),
        (["retrieve", "--service", "-", "k"], RetrieveArguments(key: "k", service: "-")),
        (["retrieve", "help"], RetrieveArguments(key: "help")),
    ])
    func linesThatMeanSomething(_ arguments: [String], _ meaning: RetrieveArguments) {
        #expect(FastRetrieve.parse(arguments) == meaning)
        #expect(CommandLineParser.retrieveArguments(arguments) == meaning)
    }

    @Test(arguments: [
        ["retrieve"], ["retrieve", "a", "b"], ["retrieve", "--json=", "k"], ["retrieve", "--json=1", "k"],
        ["retrieve", "k", "--service"], ["retrieve", "k", "--service", "--json"],
        ["retrieve", "k", "--service", "--", "s"], ["retrieve", "k", "--help"],
        ["retrieve", "k", "--version"], ["retrieve", "-k"], ["retrieve", "---k"],
        ["retrieve", "k", "--Json"],
        ["store", "k"], [], ["--", "retrieve", "k"],
    ])
    func linesThatAreNoRetrieve(_ arguments: [String]) {
        #expect(FastRetrieve.parse(arguments) == nil)
        #expect(CommandLineParser.retrieveArguments(arguments) == nil)
    }

    /// The number of random lines. Without optimization, ArgumentParser needs some 50 ms for one, and a test
    /// that computes for minutes keeps all others from their turn.
    private static let lines = TestLane.current == .all ? 2_000 : 400

    /// The program with one command only: building all of them for each line would take minutes.
    private struct RetrieveRoot: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "vaultctl", version: "1", subcommands: [Retrieve.self])
    }

    private struct TokenRoot: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "vaultctl", version: "1", subcommands: [Token.self])
    }

    /// A dash followed by something that is not ASCII: Swift may see one character in the two.
    private static func isLeftToTheSlowOne(_ arguments: [String]) -> Bool {
        arguments.contains { $0.utf8.first == UInt8(ascii: "-") && !$0.utf8.allSatisfy { $0 < 0x80 } }
    }

    private static let names = [
        "service", "vault", "backend", "collection", "state-dir", "timeout", "passphrase-file",
        "passphrase-fd",
        "key-file", "json", "no-input", "read-only", "no-agent",
    ]
    private static let values = [
        "k", "", "-", "a=b", "=", "é", "e\u{301}", "\u{301}", "日本", "retrieve", "help", "store", "s p", "12",
        "a\nb", "--", "---", "-x", "-1", "--é", "-\u{301}x", "--=x", "--service\u{301}",
    ]

    private static func line(
        of command: String, options names: [String], using generator: inout SplitMix
    ) -> [String] {
        var arguments = [command]
        if generator.next(below: 20) == 0 { arguments = [] }
        var hasKey = false
        for _ in 0..<generator.next(below: 5) {
            let name = names[generator.next(below: names.count)]
            let isFlag = ["json", "no-input", "read-only", "renew", "id"].contains(name)
            // Most values are sensible, so that many command lines are valid.
            let value = values[generator.next(below: generator.next(below: 4) == 0 ? values.count : 15)]
            switch generator.next(below: 12) {
            case 0: arguments.append("--\(name)")
            case 1: arguments.append("--\(name)=\(value)")
            case 2: arguments.append(value)
            case 3 where generator.next(below: 4) == 0:
                arguments.append(
                    ["--help", "-h", "--version", "--jso", "--json-", "--vault\u{301}=x"][
                        generator.next(below: 6)])
            case 4 where generator.next(below: 3) == 0: arguments.append("--")
            default: arguments += isFlag ? ["--\(name)"] : ["--\(name)", value]
            }
            if !hasKey, generator.next(below: 3) == 0 {
                hasKey = true
                arguments.append("k")
            }
        }
        if !hasKey, generator.next(below: 8) != 0 { arguments.append("key") }
        return arguments
    }
}

/// Random numbers that are the same in every run.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    mutating func next(below bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
}
