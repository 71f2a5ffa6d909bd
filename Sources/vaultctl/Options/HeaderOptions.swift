import ArgumentParser
import ProgramSupport
import TokenVaultAuth

/// The options of `vaultctl token` for the headers of one request.
struct HeaderOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Print the headers of a request to this address, one a line, for \"curl --header @-\".",
            valueName: "url"))
    var headersFor: String?
    @Option(
        help: ArgumentHelp("The method of that request; GET unless given.", valueName: "name"))
    var method: String?
    @Option(
        help: ArgumentHelp(
            "The last DPoP-Nonce header of that server, if it demands one.", valueName: "text"))
    var nonce: String?

    /// Checks the options. Returns `nil` when no headers are asked for. Throws a usage failure.
    func request() throws(CommandFailure) -> HeaderRequest? {
        guard let headersFor else {
            guard method == nil, nonce == nil else {
                throw .usage("--method and --nonce need --headers-for", "give the address of the request")
            }
            return nil
        }
        guard RequestOrigin(address: headersFor)?.keepsSecrets ?? false, Self.isVisible(headersFor, 8_192)
        else {
            throw .usage(
                "--headers-for is not an https address", "give it as in https://api.example.com/items")
        }
        let method = method ?? "GET"
        guard (1...32).contains(method.utf8.count),
            method.utf8.allSatisfy({ (0x61...0x7a).contains($0 | 0x20) })
        else { throw .usage("--method is not the name of a method", "give it as in POST") }
        guard nonce.map({ Self.isVisible($0, 2_048) }) ?? true else {
            throw .usage("--nonce is not visible ASCII", "copy it from the DPoP-Nonce header")
        }
        return HeaderRequest(url: headersFor, method: method, nonce: nonce)
    }

    private static func isVisible(_ text: String, _ most: Int) -> Bool {
        (1...most).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
    }
}

/// The request that headers are printed for.
struct HeaderRequest: Equatable {
    let url: String
    let method: String
    let nonce: String?
}
