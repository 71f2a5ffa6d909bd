internal import TokenVaultCore

/// Asking the person, within bounds.
extension KeyringAccess {
    /// Unlocks `collections`, or single items, asking the person if need be and allowed. Throws `locked` when one stays
    /// locked, `timedOut` when the prompt is not answered, `cancelled`.
    func unlock(_ collections: [String]) throws(TokenStorageError) {
        let reply = try ask([
            BusMethod(
                path: BusName.secretsPath, interface: BusName.service, name: "Unlock",
                body: link.make.tuple([link.make.paths(collections)]))
        ])[0]
        let values = try KeyringLink.values(reply, "(aoo)")
        guard let prompt = values[1].text, prompt != "/" else {
            guard Set(values[0].texts ?? []).isSuperset(of: collections) else { throw .keyringIsLocked }
            return
        }
        // The result of the prompt leaves out keyrings that needed no prompt.
        let open = values[0].texts ?? []
        guard let result = try run(prompt: prompt) else { throw .promptWasDismissed }
        guard Set(open + (result.texts ?? [])).isSuperset(of: collections) else { throw .keyringIsLocked }
    }
}

extension KeyringPrompting {
    /// Shows the prompt at `path` and waits for the user. Returns the result of the prompt; `nil` when the
    /// user dismissed it. Throws `locked` when no prompt is allowed. Throws `timedOut` when the user does not
    /// answer in time, and `cancelled`: then the prompt is taken back.
    func run(prompt path: String) throws(TokenStorageError) -> Variant? {
        let dismiss = BusMethod(path: path, interface: BusName.prompt, name: "Dismiss", body: nil)
        guard case .allowed(let patience) = service.configuration.prompting else {
            link.connection.tell(dismiss)
            throw .keyringIsLocked
        }
        let start = ContinuousClock.now
        defer { call.extend(by: start.duration(to: .now)) }
        call.deliver { $0.prompt = nil }
        link.connection.inbox.expectPrompt(at: path, for: call)
        defer { link.connection.inbox.forgetPrompt(at: path) }
        service.promptObserver?(true)
        defer { service.promptObserver?(false) }
        do throws(TokenStorageError) {
            let show = BusMethod(
                path: path, interface: BusName.prompt, name: "Prompt",
                body: link.make.tuple([link.make.text("")]))
            _ = try KeyringLink.values(try link.connection.ask([show], for: call)[0], "()")
            let outcome = try call.wait(longest: patience, isLost: { link.isLost }) { $0.prompt }
            switch outcome {
            case .completed(let result): return result
            case .dismissed: return nil
            case .lost: throw TokenStorageError.serviceIsLost("the service ended during a prompt")
            }
        } catch {
            if error.code == .timedOut || error.code == .cancelled { link.connection.tell(dismiss) }
            guard error.code == .timedOut else { throw error }
            throw .secretService(.timedOut, .deadline(.prompt))
        }
    }
}
