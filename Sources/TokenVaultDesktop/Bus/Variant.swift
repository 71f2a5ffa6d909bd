internal import CSecret
internal import TokenVaultCore

/// A value of D-Bus: GLib's `GVariant`, which is immutable and shared between threads.
@safe package final class Variant: @unchecked Sendable {
    let library: SecretLibrary
    /// The value, for calls of the library. GLib ends the process rather than give none.
    let pointer: OpaquePointer?

    /// Takes a value that was just made, or a new reference of one that is shared.
    init(_ library: SecretLibrary, keeping pointer: OpaquePointer?) {
        self.library = library
        unsafe self.pointer = library.c.pointee.g_variant_ref_sink(pointer)
    }

    /// Takes over the reference that a function gave.
    private init(_ library: SecretLibrary, owning pointer: OpaquePointer?) {
        self.library = library
        unsafe self.pointer = pointer
    }

    deinit { unsafe library.c.pointee.g_variant_unref(pointer) }

    // MARK: - Reading

    /// Whether its type is the one that D-Bus writes `type`, as `(oa{sv})`.
    package func isOf(_ type: String) -> Bool { unsafe csecret_is(library.c, pointer, type) != 0 }

    /// The number of elements of an array or a tuple, which it must be.
    package var count: Int { Int(unsafe library.c.pointee.g_variant_n_children(pointer)) }

    /// An element; `index` is below `count`.
    package subscript(_ index: Int) -> Variant {
        unsafe Variant(library, owning: library.c.pointee.g_variant_get_child_value(pointer, index))
    }

    /// The elements of an array or a tuple, which it must be.
    package var elements: [Variant] { (0..<count).map { self[$0] } }

    /// What a variant (`v`) holds.
    var content: Variant? {
        guard isOf("v") else { return nil }
        return unsafe Variant(library, owning: library.c.pointee.g_variant_get_variant(pointer))
    }

    /// A string or an object path.
    package var text: String? {
        guard isOf("s") || isOf("o") else { return nil }
        return unsafe library.text(library.c.pointee.g_variant_get_string(pointer, nil))
    }

    /// A boolean.
    package var bool: Bool? {
        isOf("b") ? unsafe library.c.pointee.g_variant_get_boolean(pointer) != 0 : nil
    }

    /// A 64-bit number without sign.
    var number: UInt64? { isOf("t") ? unsafe library.c.pointee.g_variant_get_uint64(pointer) : nil }

    /// A 32-bit number without sign.
    package var shortNumber: UInt32? {
        isOf("u") ? unsafe library.c.pointee.g_variant_get_uint32(pointer) : nil
    }

    /// An array of strings or of object paths.
    var texts: [String]? { isOf("as") || isOf("ao") ? elements.compactMap(\.text) : nil }

    /// A dictionary of texts, in no order.
    var attributes: TokenAttributes? {
        guard isOf("a{ss}") else { return nil }
        return TokenAttributes(elements.compactMap { ($0[0].text ?? "", $0[1].text ?? "") })
    }

    /// A dictionary of properties.
    var properties: [String: Variant]? {
        guard isOf("a{sv}") else { return nil }
        return Dictionary(
            elements.compactMap { entry in entry[1].content.map { (entry[0].text ?? "", $0) } },
            uniquingKeysWith: { $1 })
    }
}

/// Makes values of D-Bus.
package struct VariantFactory {
    let library: SecretLibrary

    package init(library: SecretLibrary) { self.library = library }

    func bool(_ value: Bool) -> Variant {
        unsafe Variant(library, keeping: library.c.pointee.g_variant_new_boolean(value ? 1 : 0))
    }

    package func number(_ value: UInt32) -> Variant {
        unsafe Variant(library, keeping: library.c.pointee.g_variant_new_uint32(value))
    }

    func number(_ value: UInt64) -> Variant {
        unsafe Variant(library, keeping: library.c.pointee.g_variant_new_uint64(value))
    }

    /// A string. It must have no NUL.
    package func text(_ value: String) -> Variant {
        unsafe Variant(library, keeping: library.c.pointee.g_variant_new_string(value))
    }

    /// An object path, as a service gave it.
    func path(_ value: String) -> Variant {
        unsafe Variant(library, keeping: library.c.pointee.g_variant_new_object_path(value))
    }

    func variant(_ value: Variant) -> Variant {
        unsafe Variant(library, keeping: library.c.pointee.g_variant_new_variant(value.pointer))
    }

    package func tuple(_ elements: [Variant]) -> Variant {
        let pointers: [OpaquePointer?] = unsafe elements.map { unsafe $0.pointer }
        return withExtendedLifetime(elements) {
            unsafe Variant(library, keeping: library.c.pointee.g_variant_new_tuple(pointers, pointers.count))
        }
    }

    func paths(_ values: [String]) -> Variant { array("o", values.map { path($0) }) }

    func attributes(_ values: TokenAttributes) -> Variant {
        array("{ss}", values.map { entry(text($0.name), text($0.value)) })
    }

    func properties(_ values: [(String, Variant)]) -> Variant {
        array("{sv}", values.map { entry(text($0.0), variant($0.1)) })
    }

    /// An array of tuples of that type.
    func tuples(_ type: String, _ values: [[Variant]]) -> Variant { array(type, values.map { tuple($0) }) }

    private func entry(_ key: Variant, _ value: Variant) -> Variant {
        unsafe Variant(
            library, keeping: library.c.pointee.g_variant_new_dict_entry(key.pointer, value.pointer))
    }

    private func array(_ type: String, _ elements: [Variant]) -> Variant {
        let pointers: [OpaquePointer?] = unsafe elements.map { unsafe $0.pointer }
        return withExtendedLifetime(elements) {
            unsafe Variant(library, keeping: csecret_array(library.c, type, pointers, pointers.count))
        }
    }
}
