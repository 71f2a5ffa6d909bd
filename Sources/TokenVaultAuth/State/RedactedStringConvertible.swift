/// What shows its name and nothing of its contents to who prints, interpolates, dumps or mirrors it: it has secrets, or what
/// other threads change.
public protocol RedactedStringConvertible: CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{}

extension RedactedStringConvertible {
    /// Says only what it is.
    public var description: String { "\(Self.self)(<redacted>)" }
    /// As ``description``.
    public var debugDescription: String { description }
    /// Shows no children.
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
