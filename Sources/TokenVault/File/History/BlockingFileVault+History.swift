extension BlockingFileVault {
    /// The most replaced values of an item that a vault can keep.
    public static var mostKeptValues: Int { Keybag.mostKeptValues }

    /// Makes compaction keep `count` replaced values of each item, 0 to ``mostKeptValues``, from now on and
    /// on every device. With 0, as in a new vault, compaction removes them all. Values under another policy
    /// or other keys than the present value's are not kept. The next compaction removes the excess, not this
    /// call. Deleting an item always erases all of its values.
    ///
    /// The vault must be unlocked (`locked`) by a slot that opens everything (`notPermitted`). Throws
    /// `invalidArgument` for another number, `conflict` when the vault got a new root key meanwhile,
    /// `readOnly`.
    public func keepReplacedValues(_ count: Int) throws(TokenStorageError) {
        try during("keep") { () throws(TokenStorageError) in
            guard let number = UInt16(exactly: count), count <= Keybag.mostKeptValues else {
                throw .file(.invalidArgument, .keptValues(most: Keybag.mostKeptValues))
            }
            let session = try session()
            let roots = try heldRoots(session)
            guard try currentKeybag(session).keptValues != number else { return }
            try replaceKeybag(session, roots: roots) { (keybag) in keybag.keptValues = number }
        }
    }
}
