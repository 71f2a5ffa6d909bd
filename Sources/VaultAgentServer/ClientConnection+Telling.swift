internal import SystemPackage
internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

extension ClientConnection {
    /// Tells changes, which ``begin(telling:of:since:)`` was told of, until the client goes away, which this thread waits for,
    /// or does not read them.
    func tell(_ changes: TokenChanges, as id: UInt32, _ incoming: WipedBuffer) {
        let teller = WorkerThread(name: "agent-teller")
        guard teller.isRunning else { return }
        let task = Task.detached { [self] in
            // The next change is taken when the one before was sent: what waits meanwhile is bounded and merged.
            var locks = self.toldLocks
            for await event in changes {
                let isSent = await withCheckedContinuation { continuation in
                    teller.run { [locks] in
                        continuation.resume(returning: self.tell(event, as: id, since: locks))
                    }
                }
                if !isSent { break }
                locks = self.toldLocks
            }
            self.socket.end()
        }
        // A subscriber says nothing more.
        _ = try? incoming.receive(from: socket, upTo: 1)
        socket.end()
        task.cancel()
    }

    /// Tells one change. When the vault was locked since it was waited for, it may be one from before, and its name is not
    /// told: the client lists anew.
    private func tell(_ event: TokenEvent, as id: UInt32, since locks: Int) -> Bool {
        let event = beginTelling(since: locks) ? event : .overflowed
        defer { endTelling() }
        let outgoing = WipedBuffer(capacity: 256)
        var writer = WireWriter(outgoing)
        writer.begin(.event, id: id)
        writer.append(event)
        _ = writer.end()
        do throws(SystemFailure) {
            try send(outgoing)
            return true
        } catch {
            return false
        }
    }
}
