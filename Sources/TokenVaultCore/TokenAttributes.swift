/// Named texts attached to an item, for searching: `["account": "work", "host": "example.com"]`.
///
/// Names and values compare by UTF-8 bytes, as keys do, and are ordered by the bytes of their names. An item
/// takes up to 64 attributes. Each name and each value is 0 to 1,024 bytes, with any characters. Beyond these
/// limits calls throw ``TokenStorageError/Code/invalidArgument``. All names and values together are at most
/// 60 KiB; above that calls throw ``TokenStorageError/Code/tooLarge``.
public struct TokenAttributes: Sendable {
    private var names: [TokenKey] = []
    private var values: [String] = []

    /// Creates an empty set of attributes.
    public init() {}

    /// Creates the attributes of `pairs`. A name given twice keeps its last value.
    public init(_ pairs: some Sequence<(String, String)>) {
        for (name, value) in pairs { self[name] = value }
    }

    /// The value of `name`. Setting `nil` removes the attribute.
    public subscript(_ name: String) -> String? {
        get {
            let (index, found) = position(of: TokenKey(name))
            return found ? values[index] : nil
        }
        set {
            let key = TokenKey(name)
            let (index, found) = position(of: key)
            switch (newValue, found) {
            case (let value?, true): values[index] = value
            case (let value?, false):
                names.insert(key, at: index)
                values.insert(value, at: index)
            case (nil, true):
                names.remove(at: index)
                values.remove(at: index)
            case (nil, false): break
            }
        }
    }

    /// Returns whether every attribute of `other` is present with the same value.
    public func contains(_ other: TokenAttributes) -> Bool {
        other.allSatisfy { name, value in
            self[name].map { $0.utf8.elementsEqual(value.utf8) } ?? false
        }
    }

    private func position(of name: TokenKey) -> (index: Int, found: Bool) {
        var low = 0
        var high = names.count
        while low < high {
            let middle = (low + high) / 2
            if names[middle] < name { low = middle + 1 } else { high = middle }
        }
        return (low, low < names.count && names[low] == name)
    }

    /// The largest number of attributes of an item.
    public static let maximumCount = 64

    /// The largest size of all names and values of an item together, in bytes of UTF-8: 60 KiB.
    public static let maximumLength = 60 << 10

    // The longest name or value, in bytes of UTF-8.
    static let longestText = 1_024
}

extension TokenAttributes: RandomAccessCollection {
    /// The first position: 0.
    public var startIndex: Int { 0 }
    /// The number of attributes.
    public var endIndex: Int { names.count }
    /// The attribute at `position`, in the order of the names' bytes.
    public subscript(position: Int) -> (name: String, value: String) {
        (names[position].name, values[position])
    }
}

extension TokenAttributes: Equatable, ExpressibleByDictionaryLiteral {
    /// Whether both have the same names and values, by bytes.
    public static func == (left: Self, right: Self) -> Bool {
        left.names == right.names
            && zip(left.values, right.values).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
    }

    /// Creates attributes from a dictionary literal.
    public init(dictionaryLiteral elements: (String, String)...) { self.init(elements) }
}
