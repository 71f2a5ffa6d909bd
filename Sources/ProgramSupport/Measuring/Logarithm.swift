internal import Glibc

/// Logarithms for drawing scales.
package enum Logarithm {
    /// Returns the logarithm to base 10 of `number`, which must be above zero (`log10`).
    package static func decimal(_ number: Double) -> Double { log10(number) }

    /// Returns ten to the power of `exponent` (`pow`).
    package static func power(_ exponent: Double) -> Double { pow(10, exponent) }
}
