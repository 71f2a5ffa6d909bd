internal import ProgramSupport
import TokenVaultPlatform

/// Returns a whole number with commas: `12,345`.
func grouped(_ number: Int) -> String {
    var text = ""
    for (index, digit) in String(abs(number)).reversed().enumerated() {
        if index > 0, index.isMultiple(of: 3) { text.append(",") }
        text.append(digit)
    }
    return (number < 0 ? "-" : "") + String(text.reversed())
}

/// Returns a number with `places` decimals: `12.30`.
func fixed(_ number: Double, _ places: Int) -> String {
    let scale = (0..<places).reduce(1) { scale, _ in scale * 10 }
    let parts = Int((number * Double(scale)).rounded())
    guard places > 0 else { return String(parts) }
    let fraction = String(abs(parts) % scale)
    let sign = parts < 0 && parts > -scale ? "-" : ""
    return sign + "\(parts / scale)." + String(repeating: "0", count: places - fraction.count) + fraction
}

/// Returns a latency with three significant digits: `1.23`, `45.6`, `789`, `12,345`, and `1.23 s` from a
/// second on.
func figure(_ microseconds: Double) -> String {
    if microseconds >= 999_999.5 { return fixed(microseconds / 1_000_000, 2) + " s" }
    if microseconds < 9.995 { return fixed(microseconds, 2) }
    if microseconds < 99.95 { return fixed(microseconds, 1) }
    return grouped(Int(microseconds.rounded()))
}

extension Latencies {
    /// Returns the latency that `share` of the calls did not exceed, 1 for the longest. Returns `–` when
    /// there are too few calls.
    func shown(_ share: Double) -> String { isTold(share) ? figure(percentile(share)) : "–" }

    /// Whether there are enough calls to determine the latency for `share`.
    func isTold(_ share: Double) -> Bool {
        count > 0 && (share == 1 || Double(count) * (1 - share) >= 0.999_999)
    }
}

/// Returns the scale label for a power of ten of microseconds: `100 ns`, `10 µs`, `1 ms`.
func scaleLabel(exponent: Int, space: String = " ") -> String {
    let (unit, power) =
        switch exponent {
        case ..<0: ("ns", exponent + 3)
        case 0..<3: ("µs", exponent)
        case 3..<6: ("ms", exponent - 3)
        default: ("s", exponent - 6)
        }
    return "\(Int(Logarithm.power(Double(power)).rounded()))\(space)\(unit)"
}

extension String {
    /// Returns the text with leading spaces, at least `width` characters long.
    func right(_ width: Int) -> String { String(repeating: " ", count: max(0, width - count)) + self }
    /// Returns the text with trailing spaces, at least `width` characters long.
    func left(_ width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
