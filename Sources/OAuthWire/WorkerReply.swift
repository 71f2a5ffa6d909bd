package import TokenVaultAuth

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#endif

/// The output of `vaultctl-oauth`: one line of JSON per reply on its standard output. The final reply is the
/// last line.
package enum WorkerReply: Codable, Sendable, Equatable {
    /// A request to open this address in the user's browser. A browser program gets the address of `page`, which
    /// leads there: other users can read the arguments of a program.
    case open(address: String, page: String?)
    /// A request to show the user this code and address.
    case device(DevicePrompt)
    /// The provider's error text, for `--verbose`.
    case errorText(String)
    /// A report that the pasted address is not the answer to this sign-in.
    case wrongAnswer
    /// The successful end of a sign-in.
    case signedIn(SignedIn)
    /// The successful end of a refresh.
    case refreshed(Refreshed)
    /// The successful end of an exchange: the other service's token.
    case exchanged(TokenInfo)
    /// The signed proof: the value of a `DPoP` header.
    case proved(String)
    /// The successful end of a revocation.
    case revoked
    /// The end of a failed request.
    case failed(WorkerFailure)

    /// The code and address of a sign-in with another device.
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

    /// The result of a sign-in.
    package struct SignedIn: Codable, Sendable, Equatable {
        let tokens: TokenInfo
        /// The provider's metadata, for later requests.
        let metadata: String
        let authentication: ClientAuthenticationMethod
        /// The user, from the checked ID token; `nil` without one.
        let user: AuthUser?
        /// Whether the token type is missing from the response. Bearer is then assumed. `nil` counts as false.
        private let isTypeAssumed: Bool?

        package init(_ signedIn: TokenVaultAuth.SignedIn) {
            tokens = signedIn.tokens
            metadata = signedIn.profile.metadata
            authentication = signedIn.profile.authentication
            user = signedIn.user
            isTypeAssumed = signedIn.isTypeAssumed ? true : nil
        }

        /// Returns the result of the sign-in with `settings`.
        package func result(with settings: SignInSettings) -> TokenVaultAuth.SignedIn {
            var result = TokenVaultAuth.SignedIn(
                tokens: tokens,
                profile: Profile(settings, metadata: metadata, authentication: authentication), user: user)
            result.isTypeAssumed = isTypeAssumed ?? false
            return result
        }
    }

    /// The result of a refresh: see `TokenRefreshResponse`.
    package struct Refreshed: Codable, Sendable, Equatable {
        package var accessToken: String
        package var expiresIn: Double?
        /// `nil` counts as false.
        package var hasUnusableLifetime: Bool?
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
            hasUnusableLifetime = response.hasUnusableLifetime ? true : nil
            refreshToken = response.refreshToken
            refreshTokenExpiresIn = response.refreshTokenExpiresIn
            idToken = response.idToken
            tokenType = response.tokenType
            scope = response.scope
            serverDate = response.serverDate?.timeIntervalSince1970
        }

        /// The response, for a token manager, which checks it.
        package var response: TokenRefreshResponse {
            var response = TokenRefreshResponse(
                accessToken: accessToken, expiresIn: expiresIn, refreshToken: refreshToken,
                refreshTokenExpiresIn: refreshTokenExpiresIn, idToken: idToken, tokenType: tokenType,
                scope: scope, serverDate: serverDate.map(Date.init(timeIntervalSince1970:)))
            response.hasUnusableLifetime = hasUnusableLifetime ?? false
            return response
        }
    }
}

/// Printing a reply shows none of its contents.
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
