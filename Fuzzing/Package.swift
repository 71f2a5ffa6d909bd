// swift-tools-version: 6.2
// A separate package: no other target needs these unsafe flags and sanitizers.
import PackageDescription

let package = Package(
    name: "Fuzzing",
    dependencies: [.package(name: "TokenVault", path: "..")],
    targets: [
        .executableTarget(
            name: "FormatFuzzer",
            dependencies: [.product(name: "TokenVault", package: "TokenVault")],
            swiftSettings: [.swiftLanguageMode(.v6), .unsafeFlags(["-parse-as-library"])]
        ),
        .executableTarget(
            name: "AgentFuzzer",
            dependencies: [
                .product(name: "TokenVault", package: "TokenVault"),
                .product(name: "VaultAgent", package: "TokenVault"),
            ],
            swiftSettings: [.swiftLanguageMode(.v6), .unsafeFlags(["-parse-as-library"])]
        ),
    ]
)
