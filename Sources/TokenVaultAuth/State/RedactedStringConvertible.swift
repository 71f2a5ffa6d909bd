/// A type that shows only its name when printed, interpolated, dumped or mirrored. It has secrets, or state
/// that other threads change.
public protocol RedactedStringConvertible: CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{}

extension RedactedStringConvertible {
    /// The name of the type.
    public var description: String { "\(Self.self)(<redacted>)" }
    /// The same as ``description``.
    public var debugDescription: String { description }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
