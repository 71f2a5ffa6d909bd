public import SystemPackage
public import TokenVaultCore
internal import TokenVaultCrypto
package import TokenVaultPlatform

extension BlockingFileVault {
    /// Writes the portable items of all services into an encrypted file at `path`, mode 0600, under its own
    /// passphrase. Items that may not leave this device stay, and are counted.
    ///
    /// The vault must be unlocked (`locked`). Throws `alreadyExists` rather than overwriting, and
    /// `wrongDevice` when `allOrNothing` is asked for and an item has to stay. Also throws `invalidArgument`
    /// for an empty passphrase, `resourcesExhausted`, and the system's failures; then there is no file.
    /// `progress` gets the items done and the total.
    public func export(
        to path: FilePath, passphrase: Secret, allOrNothing: Bool = false,
        progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> ExportReport {
        try during("export") { () throws(TokenStorageError) in
            guard let last = path.lastComponent, last.kind == .regular, let name = String(validating: last)
            else {
                throw .file(.invalidArgument, .limit(.exportPath))
            }
            let plan = try exportPlan(passphrase, allOrNothing: allOrNothing)
            let parent = path.parent
            let directory = try onDisk { () throws(SystemFailure) in
                try PosixDirectory(parent.isEmpty ? "." : parent)
            }
            return try write(plan, passphrase, to: name, in: directory, progress: progress)
        }
    }

    /// Writes the export in a directory of any disk.
    package func export(
        to name: String, in directory: any DiskDirectory, passphrase: Secret
    ) throws(TokenStorageError) -> ExportReport {
        try during("export") { () throws(TokenStorageError) in
            let plan = try exportPlan(passphrase, allOrNothing: false)
            return try write(plan, passphrase, to: name, in: directory, progress: nil)
        }
    }

    /// Writes a file that gets its name once it is whole and durable: a crash before leaves nothing under the
    /// name.
    private func write(
        _ plan: ExportPlan, _ passphrase: Secret, to name: String, in directory: any DiskDirectory,
        progress: ((Int, Int) -> Void)?
    ) throws(TokenStorageError) -> ExportReport {
        guard try onDisk({ () throws(SystemFailure) in try directory.attributes(of: name) }) == nil else {
            throw .file(.alreadyExists)
        }
        UnfinishedFiles(directory: directory, kind: .export).removeLeftOver()
        let unfinished = try UnfinishedFile(in: directory) {
            UnfinishedFiles.exportName(Random.bytes(8).hexadecimal)
        }
        let file = unfinished.file
        var hasName = false
        do throws(TokenStorageError) {
            var offset = 0
            let report = try write(plan, passphrase, progress: progress) {
                (bytes) throws(TokenStorageError) in
                try onDisk { () throws(SystemFailure) in try file.write(bytes, at: offset) }
                offset += bytes.count
            }
            try onDisk { () throws(SystemFailure) in
                try file.synchronize()
                try unfinished.takeName(name)
                hasName = true
                try directory.synchronize()
            }
            return report
        } catch {
            if hasName { try? directory.remove(name) } else { unfinished.remove() }
            throw error
        }
    }

    /// Writes the export to an open descriptor, part by part.
    public func export(
        to descriptor: FileDescriptor, passphrase: Secret, allOrNothing: Bool = false,
        progress: ((Int, Int) -> Void)? = nil
    ) throws(TokenStorageError) -> ExportReport {
        try during("export") { () throws(TokenStorageError) in
            let plan = try exportPlan(passphrase, allOrNothing: allOrNothing)
            return try write(plan, passphrase, progress: progress) { (bytes) throws(TokenStorageError) in
                try onDisk { () throws(SystemFailure) in
                    try StreamFile.write(bytes, to: descriptor.rawValue)
                }
            }
        }
    }

    private struct ExportPlan {
        let session: VaultSession
        let allOrNothing: Bool
        var items: [ItemIdentifier] = []
        var staying = 0

        /// Throws `wrongDevice` when `count` items stay behind and none may.
        func requireAll(staying count: Int) throws(TokenStorageError) {
            guard allOrNothing, count > 0 else { return }
            throw .file(.wrongDevice, .itemsBoundToDevice(count))
        }
    }

    private func exportPlan(
        _ passphrase: Secret, allOrNothing: Bool
    ) throws(TokenStorageError) -> ExportPlan {
        try UnlockMethod.passphrase(passphrase).check()
        return try exportPlan(allOrNothing: allOrNothing)
    }

    private func exportPlan(allOrNothing: Bool) throws(TokenStorageError) -> ExportPlan {
        let session = try session()
        let (entries, _) = try session.log.entries()
        guard session.ring.isUnlocked else { throw .file(.locked) }
        var plan = ExportPlan(session: session, allOrNothing: allOrNothing)
        for (item, entry) in entries {
            let access = session.ring.access(
                policy: entry.policy, setTag: entry.setTag, version: entry.keyVersion)
            switch access {
            case .keys(let keys) where !keys.policy.isThisDeviceOnly: plan.items.append(item)
            case .notPermitted where AccessPolicy(number: entry.policy)?.isThisDeviceOnly == false:
                // An export without the items that it could take would look whole.
                throw .file(.notPermitted, .permission(.everything))
            case .keys, .wrongDevice, .notPermitted, .unsupported, .closed: plan.staying += 1
            case .locked: throw .file(.locked)
            case .destroyed: break
            }
        }
        try plan.requireAll(staying: plan.staying)
        return plan
    }

    private func write(
        _ plan: ExportPlan, _ passphrase: Secret, progress: ((Int, Int) -> Void)?,
        to sink: @escaping ([UInt8]) throws(TokenStorageError) -> Void
    ) throws(TokenStorageError) -> ExportReport {
        let cost = try configuration.keyDerivationCost.checked()
        var writer = try ExportWriter(
            passphrase: passphrase, cost: cost, within: configuration.derivationLimit, sink: sink)
        var report = ExportReport(items: 0, staying: 0)
        var plan = plan
        var planned: Set<ItemIdentifier> = []
        while true {
            let missing = try add(plan, to: &writer, &report, progress)
            guard missing else { break }
            // A missing item was deleted, or has another name by now.
            planned.formUnion(plan.items)
            plan = try exportPlan(allOrNothing: plan.allOrNothing)
            plan.items.removeAll(where: planned.contains)
        }
        try writer.finish()
        progress?(plan.items.count, plan.items.count)
        return report
    }

    /// Adds the items of `plan` to the export; returns whether some of them are missing by now.
    private func add(
        _ plan: ExportPlan, to writer: inout ExportWriter, _ report: inout ExportReport,
        _ progress: ((Int, Int) -> Void)?
    ) throws(TokenStorageError) -> Bool {
        var isAnyMissing = false
        report.staying = plan.staying
        for (position, item) in plan.items.enumerated() {
            if position.isMultiple(of: 64) {
                try configuration.deadline.check()
                progress?(position, plan.items.count)
            }
            guard var found = try plan.session.item(item) else {
                isAnyMissing = true
                continue
            }
            // The item got a policy of this device since the plan was made.
            guard !found.metadata.policy.isThisDeviceOnly else {
                report.staying += 1
                try plan.requireAll(staying: report.staying)
                continue
            }
            // A session that cannot tell a policy's origin does not vouch for it.
            if plan.session.ring.roots?.all == nil, found.metadata.policy.isReadableAfterFirstUnlock {
                found.metadata.isPolicyFromLimitedSession = true
            }
            try writer.add(found)
            report.items += 1
        }
        return isAnyMissing
    }
}
