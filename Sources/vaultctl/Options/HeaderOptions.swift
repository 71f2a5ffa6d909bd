import ArgumentParser
import ProgramSupport
import TokenVaultAuth

/// The options of `vaultctl token` for the headers of one request.
struct HeaderOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Print the authorization headers of a request to this address, one per line, for \"curl -H @-\".",
            valueName: "url"))
    var headersFor: String?
    @Option(
        help: ArgumentHelp(
            "With --headers-for: the method of the request; GET by default.", valueName: "name"))
    var method: String?
    @Option(
        // A nonce may begin with a dash.
        parsing: .unconditional,
        help: ArgumentHelp(
            "With --headers-for: the last DPoP-Nonce value from the server, if the server demands a nonce.",
            valueName: "text"))
    var nonce: String?

    /// Checks the options. Returns `nil` without `--headers-for`. Throws a usage failure.
    func target() throws(CommandFailure) -> ProofTarget? {
        guard let headersFor else {
            guard method == nil, nonce == nil else {
                throw .usage("--method and --nonce need --headers-for", "give the address of the request")
            }
            return nil
        }
        guard RequestOrigin(address: headersFor)?.keepsSecrets ?? false, headersFor.utf8.count <= 8_192
        else {
            throw .usage(
                "--headers-for is not a usable https address", "write it like https://api.example.com/items")
        }
        let method = method ?? "GET"
        guard (1...32).contains(method.utf8.count),
            method.utf8.allSatisfy({ (0x61...0x7a).contains($0 | 0x20) || $0 == UInt8(ascii: "-") })
        else { throw .usage("--method is not an HTTP method", "write it like POST") }
        guard nonce.map(ProofTarget.isNonce) ?? true else {
            throw .usage("--nonce is not a nonce", "copy the value of the DPoP-Nonce header")
        }
        return ProofTarget(method: method, url: headersFor, nonce: nonce)
    }
}
