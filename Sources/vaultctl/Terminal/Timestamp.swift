#if canImport(FoundationEssentials)
import FoundationEssentials
#endif

/// Formats and parses times of RFC 3339 in the proleptic Gregorian calendar. A system calendar would cost
/// more at start-up than a whole `retrieve`.
enum Timestamp {
    /// Returns `2026-01-31T12:00:00Z`, rounded down to the second, in the years 1 to 9999.
    static func text(_ date: Date) -> String {
        let seconds = Int(
            max(-62_135_596_800, min(253_402_300_799, date.timeIntervalSince1970)).rounded(.down))
        let days = Int((Double(seconds) / 86_400).rounded(.down))
        let rest = seconds - days * 86_400
        let (year, month, day) = civil(days)
        return
            "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T"
            + "\(padded(rest / 3_600, 2)):\(padded(rest / 60 % 60, 2)):\(padded(rest % 60, 2))Z"
    }

    /// Returns `2026-01-31 12:00`, in UTC, for a table.
    static func short(_ date: Date) -> String {
        let text = text(date)
        return text.prefix(10) + " " + text.dropFirst(11).prefix(5)
    }

    /// Returns the time of `2026-01-31T12:00:00Z`, `2026-01-31t12:00:00.25+01:00` and the like; `nil` for
    /// other text.
    static func date(_ text: String) -> Date? {
        var reader = Reader(text)
        guard
            let year = reader.number(4), reader.take("-"), let month = reader.number(2), reader.take("-"),
            let day = reader.number(2), reader.take("T", "t", " "), let hour = reader.number(2),
            reader.take(":"), let minute = reader.number(2), reader.take(":"),
            let second = reader.number(2), (1...12).contains(month),
            (1...length(ofMonth: month, year)).contains(day), hour < 24, minute < 60, second <= 60
        else { return nil }
        var fraction = 0.0
        if reader.take(".") {
            var scale = 0.1
            guard let first = reader.number(1) else { return nil }
            fraction = Double(first) * scale
            while let digit = reader.number(1) {
                scale /= 10
                fraction += Double(digit) * scale
            }
        }
        var offset = 0
        if !reader.take("Z", "z") {
            let sign: Int
            if reader.take("+") { sign = 1 } else if reader.take("-") { sign = -1 } else { return nil }
            guard
                let hours = reader.number(2), reader.take(":"), let minutes = reader.number(2),
                hours < 24, minutes < 60
            else { return nil }
            offset = sign * (hours * 3_600 + minutes * 60)
        }
        guard reader.isAtEnd else { return nil }
        let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset
        return Date(timeIntervalSince1970: Double(seconds) + fraction)
    }

    private struct Reader {
        private var rest: Substring.UTF8View

        init(_ text: String) { rest = Substring(text).utf8 }

        var isAtEnd: Bool { rest.isEmpty }

        mutating func number(_ digits: Int) -> Int? {
            let head = rest.prefix(digits)
            guard head.count == digits, head.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            rest = rest.dropFirst(digits)
            return head.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        }

        mutating func take(_ choices: Unicode.Scalar...) -> Bool {
            guard let first = rest.first, choices.contains(Unicode.Scalar(first)) else { return false }
            rest = rest.dropFirst()
            return true
        }
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }

    private static func length(ofMonth month: Int, _ year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    // Conversions between a date and the days since 1970, after Howard Hinnant's "chrono-Compatible Low-Level
    // Date Algorithms". Years begin in March, so that the leap day is their last day.
    private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let year = month <= 2 ? year - 1 : year
        let era = (year >= 0 ? year : year - 399) / 400
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func civil(_ days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (
            yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month,
            dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        )
    }
}
