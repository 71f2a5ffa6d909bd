import ProgramSupport
import TestLanes
import Testing

@testable import vaultctl

@Suite(.tags(.programs), .from(.usual)) struct CommandPageTests {
    @Test func aPageHasItsPartsInOrder() {
        let page = CommandPage(
            abstract: "Do it.", description: "A text.\n\nAnother one.",
            examples: ["vaultctl a", "vaultctl b \\\n  --option"],
            statuses: [.notFound: "It is not there.", .wrongDevice: nil], standard: .items)
        let lines = page.text.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(
            lines.prefix(10) == [
                "A text.", "", "Another one.", "", "Examples:", "  vaultctl a", "  vaultctl b \\",
                "    --option", "", "Exit status:",
            ])
        let statuses = lines.dropFirst(10)
        #expect(statuses.first == "   0  Done.")
        #expect(statuses.dropFirst(2).first == "   3  It is not there.")
        #expect(!statuses.contains { $0.hasPrefix("   6  ") })
        #expect(statuses.last == "  64  The command line is wrong.")
    }

    /// ArgumentParser breaks a line of 80 columns. A longer status goes on below its text.
    @Test(arguments: [(72, 1), (73, 1), (74, 2), (139, 2), (150, 3)])
    func longStatusesAreBroken(_ length: Int, _ count: Int) {
        var text = String(repeating: "word ", count: length / 5 + 1)
        text = String(text.prefix(length - 1)) + "."
        let page = CommandPage(
            abstract: "", description: "A text.", examples: [], statuses: [.done: text], standard: .group)
        let lines = page.text.split(separator: "\n").drop { !$0.hasPrefix("   0  ") }.dropLast()
        #expect(lines.count == count, "\(lines)")
        #expect(lines.allSatisfy { $0.utf8.count < 80 })
        #expect(lines.dropFirst().allSatisfy { $0.hasPrefix("      ") && !$0.hasPrefix("       ") })
        #expect(lines.map { $0.dropFirst(6) }.joined(separator: " ") == text)
    }

    @Test func aWordThatIsTooLongStays() {
        let word = String(repeating: "w", count: 90)
        let page = CommandPage(
            abstract: "", description: "A text.", examples: [], statuses: [.done: word], standard: .group)
        #expect(page.text.contains("   0  \(word)\n"))
    }
}
