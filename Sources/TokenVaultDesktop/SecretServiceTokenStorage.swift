public import TokenVaultCore
internal import TokenVaultPlatform

/// One service's view of the user's keyring.
///
/// Every call talks to another process and therefore runs on a thread that may wait, not on the caller's. It
/// takes at most ``SecretServiceConfiguration/timeout``. Cancelling a task ends its call and dismisses its
/// prompt (`cancelled`). A write that was sent is still completed.
public struct SecretServiceTokenStorage: BridgedTokenStorage {
    /// The same storage for code that cannot wait.
    public let blocking: Blocking

    /// Creates the view of `service` of a keyring. The calls check the service: at most 1,024 bytes of UTF-8,
    /// else `invalidArgument`.
    public init(_ secretService: SecretService, service: String) {
        blocking = Blocking(secretService: secretService, service: service)
    }

    /// The keyring behind the storage.
    public var secretService: SecretService { blocking.secretService }
    /// Runs the call on a thread that may wait, within ``SecretServiceConfiguration/timeout``. Cancelling the
    /// task ends the call.
    public func run<Value: Sendable>(
        _ call: StorageCall, _ body: @escaping @Sendable (Blocking) throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value {
        try await secretService.run { (call) throws(TokenStorageError) in
            var blocking = blocking
            blocking.call = call
            return try body(blocking)
        }
    }

    /// Returns the changes from now on. Changes by other processes, also by other programs than TokenVault,
    /// are reported as far as the Secret Service signals them. Two changes of an item in quick succession may
    /// be reported once. ``TokenEvent/overflowed`` means that the service or the bus went away and came back.
    public func changes() -> TokenChanges { secretService.subscribe(service) }
}

extension SecretService {
    /// Runs `body` on a thread that may wait, with a call that ends when the task is cancelled.
    func run<Value: Sendable>(
        _ body: @escaping @Sendable (BusCall) throws(TokenStorageError) -> Value
    ) async throws(TokenStorageError) -> Value {
        let call = BusCall(timeout: configuration.timeout)
        let result: Result<Value, TokenStorageError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                threads.run {
                    continuation.resume(
                        returning: Result { () throws(TokenStorageError) in try body(call) })
                }
            }
        } onCancel: {
            call.cancel()
        }
        return try result.get()
    }
}
