#if OAuth
#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The dates of HTTP headers (RFC 9110 section 5.6.7), in all three forms that a recipient has to accept.
enum HTTPDate {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Returns the time in `text`; `nil` when there is none. `now` gives the century of a two-digit year.
    static func parse(_ text: String, now: Date) -> Date? { usual(text) ?? other(text, now: now) }

    /// Parses `Sun, 06 Nov 1994 08:49:37 GMT`, the form that almost every server writes.
    private static func usual(_ text: String) -> Date? {
        let bytes = text.utf8Span.span
        guard bytes.count == 29, text.utf8.suffix(4).elementsEqual(" GMT".utf8) else { return nil }
        guard bytes[3] == 0x2c, bytes[4] == 0x20, bytes[7] == 0x20, bytes[11] == 0x20, bytes[16] == 0x20,
            bytes[19] == 0x3a, bytes[22] == 0x3a
        else { return nil }
        func number(_ start: Int, _ digits: Int) -> Int? {
            var number = 0
            for index in start..<start + digits {
                guard (0x30...0x39).contains(bytes[index]) else { return nil }
                number = number * 10 + Int(bytes[index] - 0x30)
            }
            return number
        }
        let name = text.utf8.dropFirst(8).prefix(3)
        guard let month = months.firstIndex(where: { $0.utf8.elementsEqual(name) }), let day = number(5, 2),
            let year = number(12, 4), let hour = number(17, 2), let minute = number(20, 2),
            let second = number(23, 2)
        else { return nil }
        return date(year: year, month: month, day: day, time: (hour, minute, second))
    }

    private static func other(_ text: String, now: Date) -> Date? {
        let words = text.split(whereSeparator: { " ,-".contains($0) }).map(String.init)
        if text.contains("GMT") {
            // Sun, 06 Nov 1994 08:49:37 GMT, and Sunday, 06-Nov-94 08:49:37 GMT
            guard words.count == 6, words[5] == "GMT", let written = number(words[3]) else { return nil }
            let isShort = words[3].utf8.count == 2
            guard isShort || words[3].utf8.count == 4 else { return nil }
            return date(
                year: isShort ? century(of: written, now: now) : written, month: words[2], day: words[1],
                time: words[4])
        }
        // Sun Nov  6 08:49:37 1994
        guard words.count == 5, words[4].utf8.count == 4, let year = number(words[4]) else { return nil }
        return date(year: year, month: words[1], day: words[2], time: words[3])
    }

    private static func date(year: Int, month: String, day: String, time: String) -> Date? {
        let clock = time.split(separator: ":", omittingEmptySubsequences: false).map { number(String($0)) }
        guard let month = months.firstIndex(of: month), let day = number(day), clock.count == 3,
            let hour = clock[0], let minute = clock[1], let second = clock[2]
        else { return nil }
        return date(year: year, month: month, day: day, time: (hour, minute, second))
    }

    private static func date(year: Int, month: Int, day: Int, time: (hour: Int, minute: Int, second: Int))
        -> Date?
    {
        guard (1...31).contains(day), time.hour < 24, time.minute < 60, time.second <= 60, year >= 1_970
        else {
            return nil
        }
        let minutes = (days(year, month + 1, day) * 24 + time.hour) * 60 + time.minute
        return Date(timeIntervalSince1970: Double(minutes * 60 + time.second))
    }

    /// Returns the year that ends with these two digits and is at most 50 years ahead.
    private static func century(of year: Int, now: Date) -> Int {
        let thisYear = 1_970 + Int(now.timeIntervalSince1970 / 31_556_952)
        let candidate = thisYear / 100 * 100 + year
        return candidate > thisYear + 50 ? candidate - 100 : candidate
    }

    /// Returns the days from 1970 to a day of the Gregorian calendar, counted in years that begin in March.
    private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let year = month <= 2 ? year - 1 : year
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return year * 365 + year / 4 - year / 100 + year / 400 + dayOfYear - 719_468
    }

    private static func number(_ text: String) -> Int? {
        guard !text.isEmpty, text.utf8.count <= 4, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Int(text)
    }
}
#endif
