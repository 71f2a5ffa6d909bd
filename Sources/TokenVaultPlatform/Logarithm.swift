internal import Glibc

/// What scales are drawn with.
package enum Logarithm {
    /// The logarithm to base 10 of `number`, which is above zero (`log10`).
    package static func decimal(_ number: Double) -> Double { log10(number) }

    /// Ten to the power of `exponent` (`pow`).
    package static func power(_ exponent: Double) -> Double { pow(10, exponent) }
}
