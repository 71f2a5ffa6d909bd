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
        // On a thread of its own: the threads that tasks share may all be blocked.
        let task = Task.detached(executorPreference: teller) { [self] in
            // The next change is taken when the one before was sent: what waits meanwhile is bounded and merged.
            var locks = toldLocks
            for await event in changes {
                guard tell(event, as: id, since: locks) else { break }
                locks = toldLocks
            }
            socket.end()
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
