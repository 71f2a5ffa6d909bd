internal import SystemPackage
internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

extension ClientConnection {
    /// Sends the changes registered with ``begin(telling:of:since:)`` to the client. Returns when the client
    /// goes away or stops reading them.
    func tell(_ changes: TokenChanges, as id: UInt32, _ incoming: WipedBuffer) {
        let teller = WorkerThread(name: "agent-teller")
        guard teller.isRunning else { return }
        // Runs on a separate thread: the threads that tasks share may all be blocked.
        let task = Task.detached(executorPreference: teller) { [self] in
            // The next change is taken only after the previous one was sent. Waiting changes are bounded and
            // merged.
            var locks = toldLocks
            for await event in changes {
                guard tell(event, as: id, since: locks) else { break }
                locks = toldLocks
            }
            socket.end()
        }
        // A subscriber sends nothing more.
        _ = try? incoming.receive(from: socket, upTo: 1)
        socket.end()
        task.cancel()
    }

    /// Sends one change. If the vault was locked during the wait for it, the change may be older than the
    /// lock. The client then gets no name, but a request to list again.
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
