import ArgumentParser
import ProgramSupport
import SystemPackage
import TokenVault
import TokenVaultPlatform

struct Store: VaultCommand {
    static let configuration = CommandConfiguration(
        page: CommandPage(
            abstract: "Store a secret under a key, replacing what is there.",
            description: """
                The command reads the secret from standard input, or prompts for it on a terminal. The newline at the end of a \
                single line is dropped; several lines keep theirs. A secret is at most 1 MiB. If several lines are pasted at the prompt, nothing is stored: use a pipe.

                A replaced item keeps its label, attributes, policy and expiry, unless options give others. An expiry in the past is \
                dropped. A policy that was chosen without the root key is not kept: the vault's default applies, and a note says so.

                If the producer in a pipe fails, it may print nothing. So an empty secret from standard input does not replace another secret, unless --allow-empty is given. An empty secret can be stored under a new key. An empty answer to the prompt is not stored either. A \
                producer that fails midway may leave a part of the secret stored; the last example then stores nothing.

                With --json, the output is an object with service, key and generation.
                """,
            examples: [
                "vaultctl store access_token",
                """
                get-token | vaultctl store access_token --service com.example.app \\
                  --expires 1h
                """,
                "vaultctl store backup.key --binary --if-absent <backup.key",
                "token=$(get-token) && printf %s \"$token\" | vaultctl store access_token",
            ],
            statuses: [
                .failure:
                    "The secret is empty or longer than 1 MiB, the store does not support the policy, or another failure.",
                .refused: "The passphrase or key is wrong or may not store this, or no prompt is possible.",
                .wrongDevice: "The key has an item of another device, which cannot be replaced here.",
                .conflict:
                    "The key has an item already (--if-absent), the item has another generation (--if-generation), or the same vault is at two paths.",
            ],
            standard: .items))

    @Argument(
        help: "The secret's name. Before a name that starts with a dash, write --.",
        completion: NameCompletion.keys
    ) var key: String
    @OptionGroup var service: ServiceOptions
    @Flag(help: "Keep every byte, including a newline at the end.") var binary = false
    @Flag(help: "Store an empty secret from the prompt, or in place of another secret.") var allowEmpty =
        false
    @OptionGroup var details: DetailOptions
    @Flag(help: "Only if the key has no item.") var ifAbsent = false
    @Option(help: ArgumentHelp("Only if the item has this generation.", valueName: "number"))
    var ifGeneration: String?
    @OptionGroup(title: "Unlocking") var unlock: UnlockOptions
    @OptionGroup(title: "Where and how") var location: LocationOptions
    @OptionGroup var format: OutputOptions

    func execute(_ console: Console) throws(CommandFailure) -> ExitStatus {
        let session = try Session(console, location.arguments, unlock.arguments)
        let key = try Settings.key(key)
        let service = try Settings.service(service.service)
        let details = try ItemDetails.details(
            policy: details.policy, label: details.label, attributes: details.attribute,
            expires: details.expires)
        let expectation = try expectation()
        let storage = try session.storage(service: service)
        let secret = try readSecret(console)
        let generation: Generation?
        do throws(CommandFailure) {
            if session.backend == .secretService, ifAbsent || isGuarded(secret) {
                try requireNoOthers(key, try session.storage(service: service, orOthers: true))
            }
            let commit = try replace(key, in: storage, with: secret, details, expectation)
            generation = commit.generation
            commit.policyResets.forEach(console.notePolicyReset)
            if details.policy == nil, commit.existed.first == true, session.backend == .file {
                noteForeignPolicy(of: key, in: storage, console)
            }
        } catch {
            if error.cause?.code == .conflict, ifAbsent {
                throw CommandFailure(
                    .conflict, "the key already has an item", "leave out --if-absent to replace it")
            }
            throw error
        }
        if session.backend == .memory {
            console.note("the memory backend forgets everything when the command ends")
        }
        if format.json {
            var json = JSONWriter(console.output)
            json.object { json in
                json.member("service", service)
                json.member("key", key.name)
                json.member("generation", generation)
            }
            json.end()
        }
        return .done
    }

    /// Throws like ``replace(_:in:with:_:_:)`` for an item of another program, which the key would return
    /// without an item of this program.
    private func requireNoOthers(
        _ key: TokenKey, _ storage: any BlockingTokenStorage
    ) throws(CommandFailure) {
        let item = try calling { () throws(TokenStorageError) in try storage.item(for: key) }
        guard let item else { return }
        if ifAbsent {
            throw CommandFailure(TokenStorageError(.conflict, operation: "store", backend: "vaultctl"))
        }
        guard item.secret.isEmpty else { throw .emptyReplacement }
    }

    /// Whether `secret` may be the output of a producer that failed.
    private func isGuarded(_ secret: Secret) -> Bool {
        secret.isEmpty && !allowEmpty && !StandardStream.input.isTerminal && !ifAbsent
    }

    /// Stores `secret`. Throws when an empty secret from standard input would replace a non-empty one, since
    /// a failed producer may have written it.
    private func replace(
        _ key: TokenKey, in storage: any BlockingTokenStorage, with secret: Secret, _ details: TokenDetails,
        _ expectation: TokenChange.Expectation
    ) throws(CommandFailure) -> TokenCommit {
        let isGuarded = isGuarded(secret)
        var attempts = 0
        while true {
            var checked = expectation
            if isGuarded {
                let item = try calling { () throws(TokenStorageError) in try storage.item(for: key) }
                if case .generation(let expected) = expectation, item?.metadata.generation != expected {
                    throw CommandFailure(
                        TokenStorageError(.conflict, operation: "store", backend: "vaultctl"))
                }
                if let item, !item.secret.isEmpty { throw .emptyReplacement }
                // The expectation ensures that only the checked item is replaced, even if other processes
                // write meanwhile.
                if expectation == .any {
                    checked = item.map { .generation($0.metadata.generation) } ?? .absent
                }
            }
            let change = TokenChange.store(secret, for: key, details: details, expecting: checked)
            do { return try storage.commit([change]) } catch {
                attempts += 1
                guard error.code == .conflict, checked != expectation, attempts < 16 else {
                    throw CommandFailure(error)
                }
            }
        }
    }

    /// Prints a note when a session without the root key chose the item's policy. This session cannot change
    /// that policy.
    private func noteForeignPolicy(
        of key: TokenKey, in storage: any BlockingTokenStorage, _ console: Console
    ) {
        // The item is stored, so a failure to read its metadata is no failure of the command.
        guard let item = try? storage.metadata(for: key), item.isPolicyFromLimitedSession else { return }
        console.note(
            "the item keeps the policy \(item.policy.rawValue), which was chosen without the root key: it can be read "
                + "while the vault is locked. Unlock the vault and store the item again, or choose with --policy"
        )
    }

    private func expectation() throws(CommandFailure) -> TokenChange.Expectation {
        guard let ifGeneration else { return ifAbsent ? .absent : .any }
        guard !ifAbsent else {
            throw .usage("--if-absent and --if-generation exclude each other", "give one of them")
        }
        return .generation(try Settings.generation(ifGeneration))
    }

    private func readSecret(_ console: Console) throws(CommandFailure) -> Secret {
        if StandardStream.input.isTerminal {
            if let secret = try console.askHidden("Secret: ") {
                guard !secret.isEmpty || allowEmpty else { throw .nothingEntered }
                return secret
            }
            throw CommandFailure(.refused, "there is no secret on standard input", "pipe it in")
        }
        do throws(SystemFailure) {
            let limit = Secret.maximumLength + (binary ? 0 : 1)
            var bytes = try InputSource.standard.readAll(limit: limit, deadline: console.deadline)
            defer { SmallFile.wipe(&bytes) }
            // The newline after one line comes from the shell. The newline after several lines belongs to the
            // file, such as a PEM key.
            let newline = UInt8(ascii: "\n")
            if !binary, bytes.firstIndex(of: newline) == bytes.count - 1 { bytes.removeLast() }
            guard bytes.count <= Secret.maximumLength else { throw SystemFailure(.fileTooLarge, "read") }
            return Secret(bytes)
        } catch {
            if error.errno == .fileTooLarge { throw CommandFailure(TokenStorageError.tooLarge) }
            throw CommandFailure(error, "standard input", "pipe the secret in")
        }
    }
}

extension Console {
    /// Prints a note that an item's policy was not kept.
    func notePolicyReset(_ reset: PolicyReset) {
        note(
            "the item's policy, \(reset.from.rawValue), was chosen without the root key; "
                + "the new value has the vault's default, \(reset.to.rawValue). Choose another with --policy"
        )
    }
}

extension CommandFailure {
    fileprivate static let emptyReplacement = CommandFailure(
        .failure, "standard input was empty, and the stored secret is not",
        "nothing was changed; give --allow-empty to replace it")
}
