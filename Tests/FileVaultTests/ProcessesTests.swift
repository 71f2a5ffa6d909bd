import Glibc
import SystemPackage
import Testing
import TokenVault

/// Real processes on one real vault.
@Suite struct ProcessesTests {
    @Test func sixteenProcessesLoseNothing() throws {
        let sandbox = try Sandbox()
        let vault = try BlockingFileVault.create(
            at: sandbox.vault, unlockMethod: keyFile, configuration: sandbox.configuration)
        let workers = try (0..<16).map { number in
            try Child(
                testProgram("VaultWorker"),
                [sandbox.vault.string, sandbox.path.appending("state").string, "worker\(number)", "60"],
                output: sandbox.path.appending("output-\(number)"))
        }
        var counted = 0
        var held: [String: String] = [:]
        for worker in workers {
            let status = worker.wait()
            let output = try worker.readOutput()
            #expect(status == 0, "\(output)")
            for line in output.split(separator: "\n") {
                let words = line.split(separator: " ", maxSplits: 2)
                if words.first == "counted", let number = Int(words[1]) { counted += number }
                if words.first == "holds" { held[String(words[1])] = String(words[2]) }
            }
        }
        let storage = vault.storage(service: "workers")
        #expect(counted > 0 && !held.isEmpty)
        #expect(try storage.retrieve(for: "counter") == String(counted))
        for (key, value) in held { #expect(try storage.retrieve(for: TokenKey(key)) == value, "\(key)") }
        let listed = Set(try storage.list().items.map(\.key.name))
        #expect(listed.subtracting(["counter", "shared"]) == Set(held.keys))
        let report = try vault.verify()
        #expect(report.isClean, "\(report.problems)")
    }
}
