internal import SystemPackage
internal import TokenVault
internal import TokenVaultPlatform
internal import VaultAgent

extension ClientConnection {
    /// Tells changes until the client goes away, which this thread waits for, or does not read them.
    func tell(_ changes: TokenChanges, as id: UInt32, _ incoming: WipedBuffer) {
        let teller = WorkerThread(name: "agent-teller")
        guard teller.isRunning else { return }
        let task = Task.detached { [self] in
            // The next change is taken when the one before was sent: what waits meanwhile is bounded and merged.
            for await event in changes {
                let isSent = await withCheckedContinuation { continuation in
                    teller.run { continuation.resume(returning: self.tell(event, as: id)) }
                }
                if !isSent { break }
            }
            self.socket.end()
        }
        // A subscriber says nothing more.
        _ = try? incoming.receive(from: socket, upTo: 1)
        socket.end()
        task.cancel()
    }

    private func tell(_ event: TokenEvent, as id: UInt32) -> Bool {
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
