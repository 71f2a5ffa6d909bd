extension RefreshRequest {
    /// A request of another process's manager, passed on to the one that sends it.
    package init(
        forwarding refreshToken: String, scope: String?, idToken: String?, isRetryOfUnknownOutcome: Bool
    ) {
        self.init(
            account: "", refreshToken: refreshToken, scope: scope, idToken: idToken,
            isRetryOfUnknownOutcome: isRetryOfUnknownOutcome)
    }
}
