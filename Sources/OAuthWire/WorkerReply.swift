package import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// What `vaultctl-oauth` says: one line of JSON each on its standard output, and nothing after the one that ends it.
package enum WorkerReply: Codable, Sendable, Equatable {
    /// A person's browser is to be shown this address.
    case open(address: String)
    /// A person is to type the code in there.
    case device(DevicePrompt)
    /// The end of a sign-in.
    case signedIn(SignedIn)
    /// The end of a refresh.
    case refreshed(Refreshed)
    /// The end of a revocation.
    case revoked
    /// The end of what did not succeed.
    case failed(WorkerFailure)

    /// What a person is shown who signs in with another device.
    package struct DevicePrompt: Codable, Sendable, Equatable {
        package var code: String
        package var address: String
        /// The address with the code in it; `nil` when the provider gives none.
        package var completeAddress: String?

        package init(code: String, address: String, completeAddress: String?) {
            self.code = code
            self.address = address
            self.completeAddress = completeAddress
        }
    }

    /// What a sign-in brought.
    package struct SignedIn: Codable, Sendable, Equatable {
        package var tokens: TokenInfo
        /// What the provider says of itself, for the requests to come.
        package var metadata: String
        package var authentication: WorkerRequest.Authentication
        /// Who it is, as the ID token says, which was checked; `nil` without one.
        package var user: AuthUser?

        package init(
            tokens: TokenInfo, metadata: String, authentication: WorkerRequest.Authentication, user: AuthUser?
        ) {
            self.tokens = tokens
            self.metadata = metadata
            self.authentication = authentication
            self.user = user
        }
    }

    /// What a refresh brought: see `TokenRefreshResponse`.
    package struct Refreshed: Codable, Sendable, Equatable {
        package var accessToken: String
        package var expiresIn: Double?
        package var refreshToken: String?
        package var refreshTokenExpiresIn: Double?
        package var idToken: String?
        package var tokenType: String?
        package var scope: String?
        /// Seconds since 1970.
        package var serverDate: Double?

        package init(_ response: TokenRefreshResponse) {
            accessToken = response.accessToken
            expiresIn = response.expiresIn
            refreshToken = response.refreshToken
            refreshTokenExpiresIn = response.refreshTokenExpiresIn
            idToken = response.idToken
            tokenType = response.tokenType
            scope = response.scope
            serverDate = response.serverDate?.timeIntervalSince1970
        }

        /// The answer, for a token manager, which looks at it.
        package var response: TokenRefreshResponse {
            TokenRefreshResponse(
                accessToken: accessToken, expiresIn: expiresIn, refreshToken: refreshToken,
                refreshTokenExpiresIn: refreshTokenExpiresIn, idToken: idToken, tokenType: tokenType,
                scope: scope, serverDate: serverDate.map(Date.init(timeIntervalSince1970:)))
        }
    }
}

/// Printing one shows nothing of what it carries.
extension WorkerReply: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String {
        if case .failed(let failure) = self {
            "WorkerReply(\(failure.kind))"
        } else {
            "WorkerReply(<redacted>)"
        }
    }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

extension WorkerRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "WorkerRequest(\(operation), <redacted>)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
