extension RefreshRequest {
    /// Creates a request of another process's manager, for the process that sends it.
    package init(
        forwarding refreshToken: String, scope: String?, idToken: String?, isRetryOfUnknownOutcome: Bool
    ) {
        self.init(
            account: "", refreshToken: refreshToken, scope: scope, idToken: idToken,
            isRetryOfUnknownOutcome: isRetryOfUnknownOutcome)
    }
}
