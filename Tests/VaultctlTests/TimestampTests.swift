import ProgramSupport
import TestLanes
import Testing
import TokenVault

@testable import vaultctl

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.tags(.programs), .from(.usual)) struct TimestampTests {
    @Test(arguments: [
        (0.0, "1970-01-01T00:00:00Z"), (951_782_400, "2000-02-29T00:00:00Z"),
        (-1, "1969-12-31T23:59:59Z"), (4_107_542_399, "2100-02-28T23:59:59Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"), (253_402_300_799, "9999-12-31T23:59:59Z"),
        (-62_135_596_800, "0001-01-01T00:00:00Z"),
    ])
    func knownTimes(_ seconds: Double, _ text: String) {
        #expect(Timestamp.text(Date(timeIntervalSince1970: seconds)) == text)
        #expect(Timestamp.date(text)?.timeIntervalSince1970 == seconds)
    }

    @Test func everyDayOfFourCenturiesComesBack() {
        for day in 0..<146_097 {
            let date = Date(timeIntervalSince1970: Double(day) * 86_400 + 43_210)
            #expect(Timestamp.date(Timestamp.text(date)) == date)
        }
    }

    @Test(arguments: [
        ("2026-01-31T12:00:00+01:00", "2026-01-31T11:00:00Z"),
        ("2026-01-31t12:00:00.75-00:30", "2026-01-31T12:30:00Z"),
        ("2026-12-31 23:59:60z", "2027-01-01T00:00:00Z"),
    ])
    func otherSpellings(_ text: String, _ same: String) throws {
        #expect(Timestamp.text(try #require(Timestamp.date(text))) == same)
    }

    @Test(arguments: [
        "", "2026", "2026-01-31", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:00", "2026-01-01T00:00:00Z ", "2026-01-01T00:00:00.Z", "2026-1-01T00:00:00Z",
        "+026-01-01T00:00:00Z", "2026-01-01T00:00:00+1:00", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z",
    ])
    func whatIsNoTime(_ text: String) { #expect(Timestamp.date(text) == nil) }

    @Test func spans() throws {
        let now = Date(timeIntervalSince1970: 1_000)
        for (text, seconds) in [
            ("90s", 90.0), ("15m", 900), ("1h", 3_600), ("30d", 2_592_000), ("2w", 1_209_600),
        ] {
            #expect(try ItemDetails.expiry(text, now: now) == .at(now.addingTimeInterval(seconds)))
        }
        #expect(try ItemDetails.expiry("never", now: now) == .never)
        for text in ["1", "h", "-1h", "1.5h", "1y", " 1h"] {
            #expect(throws: CommandFailure.self) { try ItemDetails.expiry(text, now: now) }
        }
    }
}
